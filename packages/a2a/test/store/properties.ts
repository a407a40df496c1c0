import fc from "fast-check";
import { expect } from "vitest";
import { taskStates, type NewRecord } from "@parley/a2a/model";
import {
  utf8Length,
  assembleLog,
  recordBytes,
  type AppendItem,
  type ClaimPosition,
  type ContextEffect,
  type ListPosition,
  type ListQuery,
  type ReadOptions,
  type Store,
  type TaskEffect,
  type TaskHead,
} from "@parley/a2a/store";
import { Reference } from "./reference.ts";

/** Random histories of a store, each step compared with the reference. */

const owners = [
  { agent: "a", owner: "alice" },
  { agent: "a", owner: "bob" },
  { agent: "b", owner: "alice" },
] as const;
const scopes = [...owners, { agent: "a" }, { agent: "b" }] as const;
const taskIds = ["t1", "t2", "t3", "t\u0000\ud800"] as const;
const contextIds = ["c1", "c2"] as const;

const owner = fc.oneof({ weight: 8, arbitrary: fc.constant(owners[0]) }, fc.constantFrom(...owners));
const scope = fc.constantFrom(...scopes);
const taskId = fc.oneof({ weight: 4, arbitrary: fc.constantFrom(taskIds[0], taskIds[1]) }, fc.constantFrom(...taskIds));
const contextId = fc.constantFrom(...contextIds);
const time = fc.integer({ min: 0, max: 12 });
const words = fc.oneof(fc.constantFrom("", "x", '"\\"', "😀", "\u0000", "\ud800"), fc.string({ maxLength: 8 }));
const metadata = fc.dictionary(fc.constantFrom("m", "n", "__proto__", '"'), fc.jsonValue({ maxDepth: 1 }), {
  maxKeys: 2,
});
const json = fc.jsonValue({ maxDepth: 1 }).map((value) => JSON.stringify(value));
const bytes = fc.integer({ min: 0, max: 1000 });
const history = fc.option(fc.integer({ min: 0, max: 4 }), { nil: undefined });

interface Shape {
  readonly kind: "message" | "statusUpdate" | "artifactUpdate";
  readonly event: object;
  readonly rest: Pick<NewRecord, "time" | "actor" | "turn" | "attempt">;
  readonly more: Partial<NewRecord>;
}

const message = fc.record(
  {
    messageId: words,
    role: fc.constantFrom("ROLE_USER", "ROLE_AGENT"),
    parts: fc.array(fc.record({ text: words }), { minLength: 1, maxLength: 2 }),
    metadata,
  },
  { requiredKeys: ["messageId", "role", "parts"] },
);
const rest = fc.record({
  time,
  actor: fc.constantFrom("user", "agent", "system"),
  turn: fc.integer({ min: 1, max: 9 }),
  attempt: fc.integer({ min: 1, max: 3 }),
});
const more = fc.record(
  { extensions: fc.array(words, { maxLength: 2 }), trace: words, call: json },
  { requiredKeys: [] },
);
const running = fc.constantFrom("TASK_STATE_WORKING", "TASK_STATE_INPUT_REQUIRED", "TASK_STATE_AUTH_REQUIRED");
const state = fc.oneof({ weight: 6, arbitrary: running }, { weight: 1, arbitrary: fc.constantFrom(...taskStates) });

const shape: fc.Arbitrary<Shape> = fc.oneof(
  fc.tuple(message, rest, more).map(([event, rest, more]) => ({ kind: "message", event, rest, more }) as const),
  fc
    .tuple(state, fc.record({ message, metadata, keep: fc.boolean() }, { requiredKeys: [] }), rest, more)
    .map(([state, { message, metadata, keep }, rest, more]) => ({
      kind: "statusUpdate" as const,
      event: { status: { state, ...(message && { message }) }, ...(metadata && { metadata }) },
      rest,
      more: { ...more, state, ...(keep !== undefined && { keep }) },
    })),
  fc
    .tuple(
      fc.record(
        {
          artifactId: fc.constantFrom("a1", "a2", "\u0000"),
          parts: fc.array(fc.record({ text: words }), { maxLength: 2 }),
          name: words,
          metadata,
          extensions: fc.array(words, { maxLength: 2 }),
        },
        { requiredKeys: ["artifactId", "parts"] },
      ),
      fc.record({ append: fc.boolean(), lastChunk: fc.boolean() }, { requiredKeys: [] }),
      rest,
      more,
    )
    .map(
      ([artifact, flags, rest, more]) =>
        ({ kind: "artifactUpdate", event: { artifact, ...flags }, rest, more }) as const,
    ),
);

function record({ kind, event, rest, more }: Shape, taskId: string, contextId: string): NewRecord {
  const whole = kind === "message" ? event : { taskId, contextId, ...event };
  return { kind, json: JSON.stringify(whole), ...rest, ...more };
}

const leases: fc.Arbitrary<TaskEffect> = fc.oneof(
  fc
    .tuple(fc.constantFrom("n1", "n2"), time, time)
    .map(([holder, now, until]) => ({ effect: "lease", op: "acquire", holder, now, until }) as const),
  time.map((until) => ({ effect: "lease", op: "renew", until }) as const),
  fc.constantFrom("release", "revoke").map((op) => ({ effect: "lease", op }) as const),
);
const contextState = fc.option(json).map((value) => ({ effect: "contextState", value }) as const);
const once = fc
  .tuple(
    fc.constantFrom("k1", "k2", "k\u0000"),
    words,
    time,
    fc.record({ until: time, answer: json }, { requiredKeys: [] }),
  )
  .map(([key, hash, now, more]) => ({ effect: "once", key, hash, now, ...more }) as const);
const taskEffect: fc.Arbitrary<TaskEffect> = fc.oneof(
  leases,
  fc
    .option(
      fc.record(
        {
          turn: time,
          attempt: time,
          input: time,
          deaths: fc.integer({ min: 1, max: 9 }),
          alone: fc.constant(true as const),
        },
        { requiredKeys: ["turn", "attempt", "input"] },
      ),
    )
    .map((run) => ({ effect: "run", run }) as const),
  fc.option(json).map((value) => ({ effect: "checkpoint", value }) as const),
  once,
  contextState,
);
const contextEffect: fc.Arbitrary<ContextEffect> = fc.oneof(
  contextState,
  once,
  fc
    .tuple(message, time)
    .map(([event, time]) => ({ effect: "contextMessage", json: JSON.stringify(event), time }) as const),
);

/** One key an item: twice the same in one says nothing. */
function effectsOf<Effect extends TaskEffect | ContextEffect>(effect: fc.Arbitrary<Effect>): fc.Arbitrary<Effect[]> {
  return fc.uniqueArray(effect, { maxLength: 3, selector: (one) => (one.effect === "once" ? one.key : one) });
}

const create: fc.Arbitrary<AppendItem> = fc
  .tuple(
    owner,
    taskId,
    contextId,
    fc.array(message, { maxLength: 2 }),
    fc.array(shape, { maxLength: 3 }),
    rest,
    fc.record({ metadata }, { requiredKeys: [] }),
    effectsOf(taskEffect),
  )
  .map(([owner, taskId, contextId, history, shapes, rest, more, effects]) => {
    const state = "TASK_STATE_SUBMITTED" as const;
    const task = { id: taskId, contextId, status: { state }, ...(history.length > 0 && { history }), ...more };
    const first: NewRecord = { kind: "task", json: JSON.stringify(task), state, ...rest };
    return {
      task: { ...owner, taskId },
      create: { contextId },
      records: [first, ...shapes.map((shape) => record(shape, taskId, contextId))],
      ...fenced(effects, 0),
    };
  });
const change: fc.Arbitrary<AppendItem> = fc
  .tuple(
    owner,
    taskId,
    fc.array(shape, { maxLength: 3 }),
    // Mostly without conditions, so that most items change something.
    fc.record({
      expect: rarely(fc.integer({ min: 0, max: 6 })),
      fence: rarely(fc.integer({ min: 0, max: 2 })),
      maxBytes: rarely(fc.integer({ min: 0, max: 2000 })),
    }),
    effectsOf(taskEffect),
  )
  .map(([owner, taskId, shapes, { expect, fence, maxBytes }, effects]) => ({
    task: { ...owner, taskId },
    records: shapes.map((shape) => record(shape, taskId, "c1")),
    ...(expect !== undefined && { expect }),
    ...(maxBytes !== undefined && { maxBytes }),
    ...fenced(effects, fence),
  }));
const cancel: fc.Arbitrary<AppendItem> = fc.tuple(owner, taskId, time).map(([owner, taskId, time]) => ({
  task: { ...owner, taskId },
  records: [record(canceled(time), taskId, "c1")],
  effects: [
    { effect: "lease", op: "revoke" },
    { effect: "run", run: null },
  ],
}));
const inContext: fc.Arbitrary<AppendItem> = fc
  .tuple(owner, contextId, effectsOf(contextEffect))
  .map(([owner, contextId, effects]) => ({ context: { ...owner, contextId }, effects }));

function canceled(time: number): Shape {
  const state = "TASK_STATE_CANCELED";
  return {
    kind: "statusUpdate",
    event: { status: { state } },
    rest: { time, actor: "system", turn: 1, attempt: 1 },
    more: { state },
  };
}

function rarely<T>(arbitrary: fc.Arbitrary<T>): fc.Arbitrary<T | undefined> {
  return fc.oneof({ weight: 4, arbitrary: fc.constant(undefined) }, arbitrary);
}

/** Leases are renewed and released with a fence. */
function fenced(effects: TaskEffect[], fence: number | undefined): { effects: TaskEffect[]; fence?: number } {
  const needed = effects.some(
    (effect) => effect.effect === "lease" && (effect.op === "renew" || effect.op === "release"),
  );
  return { effects, ...((needed || fence !== undefined) && { fence: fence ?? 1 }) };
}

type Step =
  | { readonly step: "append"; readonly items: readonly AppendItem[] }
  | { readonly step: "sweep"; readonly now: number; readonly deleteBefore?: number; readonly compactBefore?: number }
  | { readonly step: "list"; readonly scope: (typeof scopes)[number]; readonly query: ListQuery }
  | { readonly step: "crash" };

const item = fc.oneof({ weight: 3, arbitrary: create }, { weight: 6, arbitrary: change }, cancel, inContext);
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 12, arbitrary: fc.array(item, { maxLength: 5 }).map((items) => ({ step: "append", items }) as const) },
  fc
    .record({ now: time, deleteBefore: time, compactBefore: time }, { requiredKeys: ["now"] })
    .map((options) => ({ step: "sweep", ...options }) as const),
  fc
    .tuple(
      scope,
      fc.record({ contextId, state, since: time, history, bytes }, { requiredKeys: [] }),
      fc.integer({ min: 1, max: 3 }),
      fc.boolean(),
    )
    .map(([scope, { contextId, state, since, history, bytes }, limit, artifacts]) => ({
      step: "list" as const,
      scope,
      query: {
        limit,
        artifacts,
        ...(contextId !== undefined && { contextId }),
        ...(state !== undefined && { state }),
        ...(since !== undefined && { since }),
        ...(history !== undefined && { history }),
        ...(bytes !== undefined && { bytes }),
      },
    })),
  fc.constant({ step: "crash" } as const),
);

export interface Subject {
  readonly create: () => Promise<Store>;
  /** Lets a store fall as a killed process would, and opens what it had stored. */
  readonly crash: (store: Store) => Promise<Store>;
}

/** Holds of a store when it cannot be told from the reference, whatever happens. */
export function likeTheReference({ create, crash }: Subject, runs: number): Promise<void> {
  return fc.assert(
    fc.asyncProperty(fc.array(step, { maxLength: 25, size: "max" }), history, async (steps, history) => {
      let store = await create();
      const reference = new Reference();
      for (const step of steps) {
        if (step.step === "append")
          expect(withoutSizes(await store.append(step.items))).toEqual(withoutSizes(reference.append(step.items)));
        else if (step.step === "crash") store = await crash(store);
        else if (step.step === "list") await compareLists(store, reference, step.scope, step.query);
        else {
          await store.sweep({ ...step, limit: 100 });
          reference.sweep({ ...step, limit: 100 });
        }
      }
      await compare(store, reference, history);
      await store.close();
    }),
    { numRuns: runs },
  );
}

async function compare(store: Store, reference: Reference, history: number | undefined): Promise<void> {
  for (const scope of scopes) {
    for (const id of taskIds) {
      expect(withoutSizes(await store.head(scope, id))).toEqual(withoutSizes(reference.head(scope, id)));
      for (const options of [{ artifacts: true }, { artifacts: false, ...(history !== undefined && { history }) }]) {
        const found = await store.load(scope, id, options);
        const wanted = reference.load(scope, id, options);
        expect(withoutSizes(found && { head: found.head, task: found.task })).toEqual(withoutSizes(wanted));
        const whole = await store.read(scope, id, { after: 0, limit: 1_000 });
        if (whole?.head.firstSeq === 1) expect(assembleLog(whole.records, options).task).toEqual(wanted?.task);
      }
      for (const options of [
        { after: 0, limit: 100 },
        { after: 2, limit: 2 },
        { after: 1, limit: 2, kinds: ["message", "artifactUpdate"] as const },
      ]) {
        expect(withoutSizes(await store.read(scope, id, options))).toEqual(
          withoutSizes(reference.read(scope, id, options)),
        );
      }
      await compareLogs(store, reference, scope, id);
    }
    await compareLists(store, reference, scope, { limit: 2, artifacts: true });
  }
  for (const owner of owners) {
    for (const key of ["k1", "k2", "k\u0000"]) {
      for (const now of [0, 6]) expect(await store.once(owner, key, now)).toEqual(reference.once(owner, key, now));
    }
    for (const contextId of contextIds) {
      const key = { ...owner, contextId };
      const { messages, artifacts, ...state } = reference.conversation(key);
      const { entries, ...rest } = await store.conversation(key, { limit: 1_000 });
      expect(rest).toEqual(state);
      expect(entries.filter((entry) => "message" in entry)).toEqual(messages);
      expect(sorted(entries.flatMap((entry) => ("artifact" in entry ? [entry.artifact] : [])))).toEqual(
        sorted(artifacts),
      );
      for (const limit of [0, 2]) {
        const newest = (await store.conversation(key, { limit })).entries;
        // An append to nothing, which no engine stores, is an artifact that is cut until its whole log is read.
        const isCut = newest.some((entry) => "artifact" in entry && entry.cut === true);
        if (isCut) expect(newest.length).toBeLessThanOrEqual(limit);
        else expect(newest).toHaveLength(Math.min(limit, entries.length));
        const said = newest.filter((entry) => "message" in entry);
        expect(said).toEqual(messages.slice(messages.length - said.length));
      }
    }
  }
  for (const now of [0, 6, 12]) {
    for (const agents of [["a"], ["b", "none", "a"]]) {
      const found: TaskHead[] = [];
      let after: ClaimPosition | undefined;
      do {
        const page = await store.claimable({ now, agents, limit: 2, ...(after && { after }) });
        found.push(...page.heads);
        after = page.next;
      } while (after !== undefined);
      expect(withoutSizes(found)).toEqual(withoutSizes(reference.claimable({ now, agents })));
    }
  }
}

/** What a compacted log takes is the store's own affair. */
function withoutSizes(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(withoutSizes);
  if (typeof value !== "object" || value === null) return value;
  if ("bytes" in value && "firstSeq" in value && value.firstSeq !== 1) return { ...value, bytes: "some" };
  if ("head" in value) return { ...value, head: withoutSizes(value.head) };
  return value;
}

/** In pages of few bytes: all of it, and no page larger unless it has one record. */
async function compareLogs(
  store: Store,
  reference: Reference,
  scope: (typeof scopes)[number],
  id: string,
): Promise<void> {
  const found: unknown[] = [];
  const options = { after: 0, limit: 9, bytes: 500 } satisfies ReadOptions;
  for (let after = 0; ;) {
    const page = await store.read(scope, id, { ...options, after });
    const last = page?.records.at(-1);
    if (page === undefined || last === undefined) break;
    const bytes = page.records.reduce((sum, record) => sum + recordBytes(record), 0);
    expect(page.records.length === 1 || bytes <= options.bytes).toBe(true);
    found.push(...page.records);
    after = last.seq;
  }
  expect(found).toEqual(reference.read(scope, id, { after: 0, limit: 1000 })?.records ?? []);
}

async function compareLists(
  store: Store,
  reference: Reference,
  scope: (typeof scopes)[number],
  query: ListQuery,
): Promise<void> {
  const wanted = reference.list(scope, query);
  const found: unknown[] = [];
  let after: ListPosition | undefined;
  do {
    const page = await store.list(scope, { ...query, ...(after && { after }) });
    expect(page.total).toEqual(wanted.length);
    const size = page.tasks.reduce((sum, { json, task }) => sum + utf8Length(json ?? JSON.stringify(task)), 0);
    expect(page.tasks.length === 1 || size <= (query.bytes ?? Infinity)).toBe(true);
    found.push(...page.tasks.map(({ task }) => task));
    after = page.next;
  } while (after !== undefined);
  expect(found).toEqual(wanted);
}

/** In an order that says nothing. */
function sorted(values: readonly unknown[]): readonly string[] {
  return values.map((value) => JSON.stringify(value)).sort();
}
