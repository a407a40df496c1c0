import { defaultStoreBounds, unavailable, withRoom, type StoreBounds } from "../bounds.ts";
import {
  type AppendItem,
  type AppendOutcome,
  type ClaimPage,
  type ClaimQuery,
  type ContextAppend,
  type ContextEffect,
  type ContextKey,
  type ConversationOptions,
  type DueFeature,
  type FeatureQuery,
  type FeatureRow,
  type ListQuery,
  type LoadOptions,
  type LogPage,
  type OnceRecord,
  type Owner,
  type ReadOptions,
  roomless,
  type Scope,
  type Snapshot,
  type Store,
  type StoredConversation,
  type StoreNotes,
  type StoreOperators,
  type StrandedRuns,
  type SweepOptions,
  type SweepReport,
  type TaskEffect,
  type TaskHead,
  type TaskPage,
  type TaskSearch,
  type Upkeep,
} from "../port.ts";
import { decide, readItems, refuseFeatures, type ReadItem } from "../transition.ts";
import { deletesBefore, lazyUpkeep } from "../upkeep.ts";
import { pageOf, type SortedList } from "./lists.ts";
import { addAct, MemoryOperators } from "./operators.ts";
import { assemblePage, assembleTask, newestEntries, readRecords } from "./read.ts";
import type { StoredContext, StoredTask } from "./rows.ts";
import { MemoryTables } from "./tables.ts";

/**
 * A store in the memory of this process, for tests, for development, and for agents whose tasks need not survive the process. The store grows
 * until `sweep` deletes tasks.
 */
export function memoryStore(bounds: StoreBounds = defaultStoreBounds): Store {
  return new MemoryStore(bounds);
}

class MemoryStore implements Store {
  readonly durable = false;
  readonly #bounds: StoreBounds;
  #data = new MemoryTables();
  #closed = false;
  readonly search: TaskSearch = lazySearch(() => this.#tables);
  readonly upkeep: Upkeep = lazyUpkeep(async () => {
    const { MemoryUpkeep } = await import("./upkeep.ts");
    return new MemoryUpkeep(this.#tables);
  });
  readonly operators: StoreOperators = new MemoryOperators(() => this.#tables);
  readonly notes: StoreNotes = {
    read: async (keys, now) => {
      const { notes } = this.#tables;
      const found = keys.map((key) => notes.get(key));
      return new Map(found.flatMap((note) => (note !== undefined && note.until > now ? [[note.key, note.value]] : [])));
    },
    write: async (notes, now) => {
      const { notes: all } = this.#tables;
      for (const [key, { until }] of all) if (until <= now) all.delete(key);
      for (const note of notes) all.set(note.key, note);
    },
  };

  constructor(bounds: StoreBounds) {
    this.#bounds = bounds;
  }

  async append(items: readonly AppendItem[]): Promise<readonly AppendOutcome[]> {
    return appendItems(this.#tables, items);
  }

  async head(scope: Scope, taskId: string): Promise<TaskHead | undefined> {
    const task = this.#tables.find(scope, taskId);
    return task && withValues(task);
  }

  async load(scope: Scope, taskId: string, options: LoadOptions): Promise<Snapshot | undefined> {
    for (let most = options.room === undefined ? Infinity : roomless; ;) {
      const task = this.#tables.find(scope, taskId);
      if (task === undefined || task.head.bytes <= most) return task && assembleTask(task, options, this.#bounds);
      most = task.head.bytes;
      await options.room?.reserve(most);
    }
  }

  read(scope: Scope, taskId: string, options: ReadOptions): Promise<LogPage | undefined> {
    return withRoom(options.room, (most) => {
      const task = this.#tables.find(scope, taskId);
      return task && readRecords(task, options, most);
    });
  }

  list(scope: Scope, query: ListQuery): Promise<TaskPage> {
    return withRoom(query.room, (most) => this.#page(scope, query, most));
  }

  #page(scope: Scope, query: ListQuery, most: number): TaskPage {
    const indexes = this.#tables.indexesOf(scope, query.contextId);
    const before = query.after && this.#tables.find(scope, query.after.taskId)?.number;
    const found = pageOf(indexes, query, before);
    const tasks = assemblePage(found.slice(0, query.limit), query, this.#bounds, most);
    const last = found[tasks.length - 1];
    const total = indexes.reduce((sum, index) => sum + index.count(query), 0);
    if (found.length <= tasks.length || last === undefined) return { tasks, total };
    return { tasks, total, next: { statusTime: last.statusTime, taskId: last.head.task.taskId } };
  }

  once(owner: Owner, key: string, now: number): OnceRecord | undefined {
    return this.#tables.key(owner, key, now);
  }

  async conversation(
    { agent, owner, contextId }: ContextKey,
    options: ConversationOptions,
  ): Promise<StoredConversation> {
    const context = this.#tables.owner({ agent, owner })?.contexts.get(contextId);
    if (context === undefined) return { entries: [] };
    const entries =
      options.limit > 0
        ? newestEntries(context, this.#tables.find({ agent, owner }, options.before?.taskId ?? ""), options)
        : [];
    return { ...(context.state !== undefined && { state: context.state }), entries };
  }

  async claimable({ now, agents, holders, limit, after }: ClaimQuery): Promise<ClaimPage> {
    const place = after && { due: after.leaseUntil ?? -Infinity, number: after.number };
    const isAsked = ({ due = 0, head }: StoredTask): boolean =>
      due <= now && (holders === undefined || (head.holder !== undefined && holders.includes(head.holder)));
    const found = this.#tables.runsOf(agents, place, holders === undefined ? limit + 1 : Infinity).filter(isAsked);
    const page = found.slice(0, limit);
    const heads = page.map(({ head }) => head);
    const last = page.at(-1);
    if (found.length <= limit || last === undefined) return { heads };
    const { leaseUntil } = last.head;
    return { heads, next: { number: last.number, ...(leaseUntil !== undefined && { leaseUntil }) } };
  }

  async stranded({
    now,
    agents,
    limit,
  }: Pick<ClaimQuery, "now" | "agents" | "limit">): Promise<readonly StrandedRuns[]> {
    return this.#tables.strandedRuns(agents, now).slice(0, limit);
  }

  async features(scope: Scope, taskId: string, feature: string): Promise<readonly FeatureRow[]> {
    const task = this.#tables.find(scope, taskId);
    return task === undefined ? [] : this.#tables.features.of(task, feature);
  }

  async dueFeatures(query: FeatureQuery): Promise<readonly DueFeature[]> {
    return this.#tables.features.due(query);
  }

  async sweep(options: SweepOptions): Promise<SweepReport> {
    const { deleteBefore = -Infinity, compactBefore = -Infinity, rules = [], now, limit } = options;
    const { ending, terminal, idle, loose } = this.#tables;
    /** No rule deletes items that are newer than this. */
    const latest = Math.max(deleteBefore, ...rules.map((rule) => rule.deleteBefore));
    const keys = drain(ending, limit, { isDue: ({ until }) => until <= now, take: (key) => this.#tables.forget(key) });
    const deleted = drain(terminal, limit, {
      isDue: ({ statusTime }) => statusTime < latest,
      stays: ({ head, state, statusTime }) => statusTime >= deletesBefore(options, head.task.agent, state),
      take: (task) => this.#tables.delete(task),
    });
    const contexts = drain(idle, limit, {
      isDue: ({ touched }) => touched < latest,
      // Idempotency keys are kept until they expire, even if their conversation is old.
      stays: ({ keys: own, owner, touched }) =>
        touched >= deletesBefore(options, owner.agent.name) ||
        own.some(({ until }) => until !== Infinity && until > now),
      take: (context) => this.#tables.drop(context),
    });
    const compacted = drain(loose, limit - deleted.count, {
      isDue: ({ statusTime }) => statusTime < compactBefore,
      take: (task) => this.#tables.compact(task, this.#bounds.compaction),
    });
    const more = [keys, deleted, contexts, compacted].some((each) => each.more);
    return { deleted: deleted.count, compacted: compacted.count, more };
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#data = new MemoryTables();
  }

  /** Throws if the store is closed. */
  get #tables(): MemoryTables {
    if (this.#closed) throw unavailable("The store is closed");
    return this.#data;
  }
}

/* Applies an append to the tables. */

/** Applies items in order. A malformed item throws before anything is changed. */
function appendItems(tables: MemoryTables, items: readonly AppendItem[]): readonly AppendOutcome[] {
  return readItems(items).map((item) => ("item" in item ? appendTask(tables, item) : appendContext(tables, item)));
}

function appendTask(tables: MemoryTables, read: ReadItem): AppendOutcome {
  const { item } = read;
  const known = tables.find({ agent: item.task.agent }, item.task.taskId);
  const own = known?.head.task.owner === item.task.owner ? known : undefined;
  const once = findDuplicate(tables, item.task, item.effects ?? []);
  if (once !== undefined) return { ok: false, reason: "duplicate", once, ...(own && { head: own.head }) };
  // A task of another owner is visible only to an item that would create a task with the same id.
  const head = decide(read, item.create === undefined ? own?.head : known?.head);
  if (typeof head === "string") return { ok: false, reason: head, ...(own && { head: own.head }) };
  const reason = read.features.length > 0 ? refuseFeatures(read.features, tables.features.lookup(own)) : undefined;
  if (reason !== undefined) return { ok: false, reason, ...(own && { head: own.head }) };

  const task = own === undefined ? tables.create(read, head) : tables.change(own, read, head);
  for (const effect of item.effects ?? []) applyToTask(tables, task, effect);
  return { ok: true, seq: head.seq, fence: head.fence };
}

function appendContext(tables: MemoryTables, { context: key, effects }: ContextAppend): AppendOutcome {
  const once = findDuplicate(tables, key, effects);
  if (once !== undefined) return { ok: false, reason: "duplicate", once };
  const context = tables.ensureContext(key);
  for (const effect of effects) applyToContext(tables, context, effect);
  return { ok: true, seq: 0, fence: 0 };
}

/** Applies the effects that do not change the head. Leases and runs are applied with the head. */
function applyToTask(tables: MemoryTables, task: StoredTask, effect: TaskEffect): void {
  const { taskId } = task.head.task;
  if (effect.effect === "checkpoint") task.checkpoint = effect.value ?? undefined;
  else if (effect.effect === "taskState") task.taskState = effect.value ?? undefined;
  else if (effect.effect === "contextState") task.context.state = effect.value ?? undefined;
  else if (effect.effect === "feature") tables.features.apply(task, effect);
  else if (effect.effect === "act") addAct(tables, effect);
  else if (effect.effect === "once") {
    tables.remember(task.context.owner, task, effect, { taskId, seq: task.head.seq });
  }
}

function applyToContext(tables: MemoryTables, context: StoredContext, effect: ContextEffect): void {
  if (effect.effect === "contextState") context.state = effect.value ?? undefined;
  else if (effect.effect === "contextMessage") {
    tables.say(context, { kind: "message", json: effect.json, time: effect.time });
    tables.touch(context, effect.time);
  } else {
    tables.remember(context.owner, context, effect, { seq: 0 });
    tables.touch(context, effect.now);
  }
}

function findDuplicate(
  tables: MemoryTables,
  owner: Owner,
  effects: readonly (TaskEffect | ContextEffect)[],
): OnceRecord | undefined {
  for (const effect of effects) {
    const known = effect.effect === "once" ? tables.key(owner, effect.key, effect.now) : undefined;
    if (known !== undefined) return known;
  }
  return undefined;
}

function lazySearch(tables: () => MemoryTables): TaskSearch {
  let loading: Promise<TaskSearch> | undefined;
  const load = (): Promise<TaskSearch> =>
    (loading ??= import("./search.ts").then(({ MemorySearch }) => new MemorySearch(tables)));
  return {
    // A search that was never on is not loaded just to switch it off.
    use: async (on) => (on || loading !== undefined ? (await load()).use(on) : undefined),
    find: async (owner, query) => (await load()).find(owner, query),
  };
}

/** Adds the checkpoint and the state, which only `head` returns, to a head. */
function withValues({ head, checkpoint, taskState }: StoredTask): TaskHead {
  if (checkpoint === undefined && taskState === undefined) return head;
  return { ...head, ...(checkpoint !== undefined && { checkpoint }), ...(taskState !== undefined && { taskState }) };
}

interface Drain<Item> {
  isDue(item: Item): boolean;
  /** Whether to keep an item that is due. */
  stays?(item: Item): boolean;
  take(item: Item): void;
}

/** Removes the first items of a list while they are due, at most `limit`. */
function drain<Key, Item extends Key>(
  list: SortedList<Key, Item>,
  limit: number,
  { isDue, stays, take }: Drain<Item>,
): { count: number; more: boolean } {
  let count = 0;
  let item = list.first();
  while (item !== undefined && isDue(item)) {
    const [next] = list.after(item, 1);
    if (stays?.(item) !== true) {
      if (count >= limit) return { count, more: true };
      take(item);
      count += 1;
    }
    item = next;
  }
  return { count, more: false };
}
