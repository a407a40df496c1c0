import { utf8Length } from "@parley/a2a/internal/base/index";
import {
  assembleLog,
  recordBytes,
  type AppendItem,
  type ClaimPosition,
  type ContextKey,
  type FeatureQuery,
  type ListPosition,
  type ListQuery,
  type Owner,
  type Scope,
  type Store,
  type TaskHead,
} from "@parley/server/internal/store/index";
import type { Expect } from "../runner.ts";
import type { Reference } from "./reference.ts";

/** Runs the same queries on a store and the reference, and compares the results. */
export class Comparison {
  readonly #expect: Expect;
  readonly #store: Store;
  readonly #reference: Reference;

  constructor(expect: Expect, store: Store, reference: Reference) {
    this.#expect = expect;
    this.#store = store;
    this.#reference = reference;
  }

  /** `history`: number of messages to request when a task is loaded a second time. */
  async everything(history: number | undefined): Promise<void> {
    for (const scope of scopes) {
      for (const id of taskIds) await this.#task(scope, id, history);
      await this.lists(scope, { limit: 2, artifacts: true });
      await this.lists(scope, { limit: 2, artifacts: true, mergeTextParts: true });
    }
    for (const owner of owners) {
      await this.#keysOf(owner);
      for (const contextId of contextIds) await this.#conversation({ ...owner, contextId });
    }
    for (const now of [0, 6, 12]) {
      for (const agents of [["a"], ["b", "none", "a"]]) await this.#claimable(now, agents);
      for (const agents of [["a"], ["b", "none", "a"]]) await this.due({ now, agents, limit: 3 });
      await this.due({ now, limit: 3 });
    }
  }

  /** Compares the due rows of features. */
  async due(query: Omit<FeatureQuery, "feature">): Promise<void> {
    for (const feature of features) {
      const found = await this.#store.dueFeatures({ feature, ...query });
      this.#expect(found).toEqual(this.#reference.dueFeatures({ feature, ...query }));
    }
  }

  /** Compares all pages of a list. A page has at most the requested bytes, unless it has only one task. */
  async lists(scope: Scope, query: ListQuery): Promise<void> {
    const wanted = this.#reference.list(scope, query);
    const found: unknown[] = [];
    let after: ListPosition | undefined;
    do {
      const page = await this.#store.list(scope, { ...query, ...(after && { after }) });
      this.#expect(page.total).toEqual(wanted.length);
      const size = page.tasks.reduce((sum, { json, task }) => sum + utf8Length(json ?? JSON.stringify(task)), 0);
      this.#expect(page.tasks.length === 1 || size <= (query.bytes ?? Infinity)).toEqual(true);
      found.push(...page.tasks.map(({ task }) => task));
      after = page.next;
    } while (after !== undefined);
    this.#expect(found).toEqual(wanted);
  }

  async #task(scope: Scope, id: string, history: number | undefined): Promise<void> {
    this.#same(await this.#store.head(scope, id), this.#reference.head(scope, id));
    for (const options of [
      { artifacts: true },
      { artifacts: true, mergeTextParts: true },
      { artifacts: false, ...(history !== undefined && { history }) },
    ]) {
      const found = await this.#store.load(scope, id, options);
      const wanted = this.#reference.load(scope, id, options);
      this.#same(found && { head: found.head, task: found.task }, wanted);
      const whole = await this.#store.read(scope, id, { after: 0, limit: 1_000 });
      if (whole?.head.firstSeq === 1) {
        this.#expect(assembleLog(whole.records, options).task).toEqual(wanted?.task);
      }
    }
    for (const options of [
      { after: 0, limit: 100 },
      { after: 2, limit: 2 },
      { after: 1, limit: 2, kinds: ["message", "artifactUpdate"] as const },
    ]) {
      this.#same(await this.#store.read(scope, id, options), this.#reference.read(scope, id, options));
    }
    for (const feature of features) {
      const rows = await this.#store.features(scope, id, feature);
      this.#expect(rows).toEqual(this.#reference.features(scope, id, feature));
    }
    await this.#log(scope, id);
  }

  /** Compares a log in small pages. A page has at most the requested bytes, unless it has only one record. */
  async #log(scope: Scope, id: string): Promise<void> {
    const found: unknown[] = [];
    const most = 500;
    for (let after = 0; ;) {
      const page = await this.#store.read(scope, id, { after, limit: 9, bytes: most });
      const last = page?.records.at(-1);
      if (page === undefined || last === undefined) break;
      const bytes = page.records.reduce((sum, record) => sum + recordBytes(record), 0);
      this.#expect(page.records.length === 1 || bytes <= most).toEqual(true);
      found.push(...page.records);
      after = last.seq;
    }
    this.#expect(found).toEqual(this.#reference.read(scope, id, { after: 0, limit: 1000 })?.records ?? []);
  }

  async #keysOf(owner: Owner): Promise<void> {
    for (const key of keys) {
      for (const now of [0, 6]) {
        this.#expect(await this.#store.once(owner, key, now)).toEqual(this.#reference.once(owner, key, now));
      }
    }
  }

  async #conversation(key: ContextKey): Promise<void> {
    const { messages, artifacts, ...state } = this.#reference.conversation(key);
    const { entries, ...rest } = await this.#store.conversation(key, { limit: 1_000 });
    this.#expect(rest).toEqual(state);
    this.#expect(entries.filter((entry) => "message" in entry)).toEqual(messages);
    this.#expect(sorted(entries.flatMap((entry) => ("artifact" in entry ? [entry.artifact] : [])))).toEqual(
      sorted(artifacts),
    );
    for (const limit of [0, 2]) {
      const newest = (await this.#store.conversation(key, { limit })).entries;
      // An append to an unknown artifact is cut unless the whole log is read. The engine never stores such an append.
      const isCut = newest.some((entry) => "artifact" in entry && entry.cut === true);
      const most = Math.min(limit, entries.length);
      this.#expect(isCut ? newest.length <= limit : newest.length === most).toEqual(true);
      const said = newest.filter((entry) => "message" in entry);
      this.#expect(said).toEqual(messages.slice(messages.length - said.length));
    }
  }

  async #claimable(now: number, agents: readonly string[]): Promise<void> {
    const found: TaskHead[] = [];
    let after: ClaimPosition | undefined;
    do {
      const page = await this.#store.claimable({ now, agents, limit: 2, ...(after && { after }) });
      found.push(...page.heads);
      after = page.next;
    } while (after !== undefined);
    this.#same(found, this.#reference.claimable({ now, agents }));
  }

  #same(found: unknown, wanted: unknown): void {
    this.#expect(withoutSizes(found)).toEqual(withoutSizes(wanted));
  }
}

/** Removes the sizes of compacted logs, which depend on the store. */
export function withoutSizes(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutSizes);
  if (typeof value !== "object" || value === null) return value;
  if ("bytes" in value && "firstSeq" in value && value.firstSeq !== 1) return { ...value, bytes: "some" };
  if ("head" in value) return { ...value, head: withoutSizes(value.head) };
  return value;
}

/** The values, sorted. */
function sorted(values: readonly unknown[]): readonly string[] {
  return values.map((value) => JSON.stringify(value)).sort();
}

/** The names in random histories. */
export const owners = [
  { agent: "a", owner: "alice" },
  { agent: "a", owner: "bob" },
  { agent: "b", owner: "alice" },
] as const;
export const scopes: readonly Scope[] = [...owners, { agent: "a" }, { agent: "b" }];
export const taskIds = ["t1", "t2", "t3", "t\u0000\ud800"] as const;
export const contextIds = ["c1", "c2"] as const;
export const features = ["f", "g"] as const;
export const featureKeys = ["k1", "k\u0000\ud800"] as const;
export const keys = ["k1", "k2", "k\u0000"] as const;

/** One step of a history. */
export type Step =
  | { readonly step: "append"; readonly items: readonly AppendItem[] }
  | { readonly step: "sweep"; readonly now: number; readonly deleteBefore?: number; readonly compactBefore?: number }
  | { readonly step: "list"; readonly scope: Scope; readonly query: ListQuery }
  | { readonly step: "crash" };
