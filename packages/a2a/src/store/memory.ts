import { utf8Length } from "../base/index.ts";
import type { LogRecord } from "../model/index.ts";
import { assemble, type TaskPieces } from "./assemble.ts";
import { defaultStoreBounds, tooLarge, type StoreBounds } from "./bounds.ts";
import { MemoryTables, piecesOf, type StoredContext, type StoredTask } from "./memory-tables.ts";
import { PageBudget } from "./page-budget.ts";
import {
  defaultPageBytes,
  roomless,
  type AppendItem,
  type AppendOutcome,
  type ClaimPage,
  type ClaimQuery,
  type ContextAppend,
  type ContextEffect,
  type ContextKey,
  type StoredConversation,
  type ConversationOptions,
  type ListQuery,
  type ListedTask,
  type LoadOptions,
  type LogPage,
  type OnceRecord,
  type Owner,
  type ReadOptions,
  type Scope,
  type Snapshot,
  type Store,
  type StrandedRuns,
  type SweepOptions,
  type SweepReport,
  type TaskEffect,
  type TaskHead,
  type TaskPage,
} from "./port.ts";
import { NeedsRoom, PageRoom, withRoom } from "./room.ts";
import { newestEntries } from "./memory-conversation.ts";
import type { SortedList } from "./sorted-list.ts";
import { newestFirst } from "./task-index.ts";
import type { SnapshotText } from "./task-text.ts";
import { decide, readItem, recordBytes, type ReadItem } from "./transition.ts";
import { unavailable } from "./unavailable.ts";

/**
 * A store in the memory of this process: everything is gone when the process ends. For tests, for development, and for
 * agents whose tasks need not outlive them. It grows until `sweep` deletes.
 */
export function memoryStore(bounds: StoreBounds = defaultStoreBounds): Store {
  return new MemoryStore(bounds);
}

class MemoryStore implements Store {
  readonly durable = false;
  readonly #bounds: StoreBounds;
  #tables = new MemoryTables();
  #closed = false;

  constructor(bounds: StoreBounds) {
    this.#bounds = bounds;
  }

  async append(items: readonly AppendItem[]): Promise<readonly AppendOutcome[]> {
    this.#check();
    // Whatever cannot be understood is thrown here, before the first item changes anything.
    const read = items.map((item) => ("task" in item ? readItem(item) : item));
    return read.map((item) => ("item" in item ? this.#appendTask(item) : this.#appendContext(item)));
  }

  async head(scope: Scope, taskId: string): Promise<TaskHead | undefined> {
    this.#check();
    const task = this.#tables.find(scope, taskId);
    return task && withCheckpoint(task);
  }

  async load(scope: Scope, taskId: string, options: LoadOptions): Promise<Snapshot | undefined> {
    this.#check();
    for (let most = options.room === undefined ? Infinity : roomless; ;) {
      const task = this.#tables.find(scope, taskId);
      if (task === undefined || task.head.bytes <= most) return task && this.#assemble(task, options);
      most = task.head.bytes;
      await options.room?.reserve(most);
      this.#check();
    }
  }

  async read(scope: Scope, taskId: string, options: ReadOptions): Promise<LogPage | undefined> {
    return withRoom(options.room, (most) => this.#log(scope, taskId, options, most));
  }

  #log(scope: Scope, taskId: string, options: ReadOptions, most: number): LogPage | undefined {
    this.#check();
    const task = this.#tables.find(scope, taskId);
    if (task === undefined) return undefined;
    const { after, limit, bytes = defaultPageBytes, kinds } = options;
    const budget = task.head.bytes <= Math.min(bytes, most) ? undefined : new PageBudget(bytes);
    let sum = 0;
    const records: LogRecord[] = [];
    for (
      let i = Math.max(0, after - task.head.firstSeq + 1);
      i < task.records.length && records.length < limit;
      i += 1
    ) {
      const record = task.records[i];
      if (record === undefined || kinds?.includes(record.kind) === false) continue;
      if (budget !== undefined) {
        const size = recordBytes(record);
        if (!budget.take(size)) break;
        sum += size;
      }
      records.push(record);
    }
    if (sum > most) throw new NeedsRoom(sum);
    return { records, head: task.head };
  }

  async list(scope: Scope, query: ListQuery): Promise<TaskPage> {
    return withRoom(query.room, (most) => this.#page(scope, query, most));
  }

  #page(scope: Scope, query: ListQuery, most: number): TaskPage {
    this.#check();
    const indexes = this.#tables.indexesOf(scope, query.contextId);
    const found = indexes
      .flatMap((index) => index.page(query))
      .sort(newestFirst)
      .slice(0, query.limit + 1);
    const tasks = this.#texts(found.slice(0, query.limit), query, most);
    const last = found[tasks.length - 1];
    const total = indexes.reduce((sum, index) => sum + index.count(query), 0);
    if (found.length <= tasks.length || last === undefined) return { tasks, total };
    return { tasks, total, next: { statusTime: last.statusTime, number: last.number } };
  }

  once(owner: Owner, key: string, now: number): OnceRecord | undefined {
    this.#check();
    return this.#tables.key(owner, key, now);
  }

  async conversation(
    { agent, owner, contextId }: ContextKey,
    options: ConversationOptions,
  ): Promise<StoredConversation> {
    this.#check();
    const context = this.#tables.owner({ agent, owner })?.contexts.get(contextId);
    if (context === undefined) return { entries: [] };
    const entries =
      options.limit > 0
        ? newestEntries(context, this.#tables.find({ agent, owner }, options.before?.taskId ?? ""), options)
        : [];
    return { ...(context.state !== undefined && { state: context.state }), entries };
  }

  async claimable({ now, agents, limit, after }: ClaimQuery): Promise<ClaimPage> {
    this.#check();
    const place = after && { due: after.leaseUntil ?? -Infinity, number: after.number };
    const found = this.#tables.runsOf(agents, place, limit + 1).filter((task) => (task.due ?? 0) <= now);
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
    this.#check();
    return this.#tables.strandedRuns(agents, now).slice(0, limit);
  }

  async sweep({ deleteBefore = -Infinity, compactBefore = -Infinity, now, limit }: SweepOptions): Promise<SweepReport> {
    this.#check();
    const keys = drain(
      this.#tables.ending,
      limit,
      (key) => key.until <= now,
      (key) => this.#tables.forget(key),
    );
    const deleted = drain(
      this.#tables.terminal,
      limit,
      (task) => task.statusTime < deleteBefore,
      (task) => this.#tables.delete(task),
    );
    const contexts = drain(
      this.#tables.idle,
      limit,
      (context) => context.touched < deleteBefore,
      (context) => this.#tables.drop(context),
    );
    const compacted = drain(
      this.#tables.loose,
      limit - deleted.count,
      (task) => task.statusTime < compactBefore,
      (task) => this.#tables.compact(task, this.#bounds.compaction),
    );
    return {
      deleted: deleted.count,
      compacted: compacted.count,
      more: keys.more || deleted.more || contexts.more || compacted.more,
    };
  }

  async close(): Promise<void> {
    this.#closed = true;
    this.#tables = new MemoryTables();
  }

  #check(): void {
    if (this.#closed) throw unavailable("The store is closed");
  }

  #assemble(task: StoredTask, options: LoadOptions): SnapshotText {
    const pieces = piecesOf(task, options.history);
    if (task.head.bytes > this.#bounds.text) {
      const length = lengthOf(pieces, options);
      if (length > this.#bounds.text) throw tooLarge(task.head.task.taskId, length, this.#bounds.text);
    }
    return assemble(pieces, options);
  }

  /** As many of the tasks as fit into the page. */
  #texts(found: readonly StoredTask[], query: ListQuery, most: number): readonly ListedTask[] {
    const { bytes = defaultPageBytes } = query;
    const whole = found.reduce((sum, { head }) => sum + head.bytes, 0) <= bytes;
    const budget = new PageBudget(bytes);
    const held = new PageRoom(
      found.map(({ head }) => head.bytes),
      query,
      most,
    );
    const tasks: ListedTask[] = [];
    for (const task of found) {
      // What is large and cannot fit is not put together first.
      if (task.head.bytes > bytes && !budget.fits(lengthOf(piecesOf(task, query.history), query))) break;
      const listed = this.#assemble(task, query);
      if (!whole && !budget.take(bytesOf(listed))) break;
      if (held.counts) held.take(bytesOf(listed));
      tasks.push(listed);
    }
    return tasks;
  }

  #appendTask(read: ReadItem): AppendOutcome {
    const { item } = read;
    const known = this.#tables.find({ agent: item.task.agent }, item.task.taskId);
    const own = known?.head.task.owner === item.task.owner ? known : undefined;
    const once = this.#duplicate(item.task, item.effects ?? []);
    if (once !== undefined) return { ok: false, reason: "duplicate", once, ...(own && { head: own.head }) };
    // A task of somebody else is there only for one who wants to make it again.
    const head = decide(read, item.create === undefined ? own?.head : known?.head);
    if (typeof head === "string") return { ok: false, reason: head, ...(own && { head: own.head }) };

    const task = own === undefined ? this.#tables.create(read, head) : this.#tables.change(own, read, head);
    for (const effect of item.effects ?? []) this.#applyToTask(task, effect);
    return { ok: true, seq: head.seq, fence: head.fence };
  }

  #appendContext({ context: key, effects }: ContextAppend): AppendOutcome {
    const once = this.#duplicate(key, effects);
    if (once !== undefined) return { ok: false, reason: "duplicate", once };
    const context = this.#tables.ensureContext(key);
    for (const effect of effects) this.#applyToContext(context, effect);
    return { ok: true, seq: 0, fence: 0 };
  }

  #applyToTask(task: StoredTask, effect: TaskEffect): void {
    switch (effect.effect) {
      case "checkpoint":
        task.checkpoint = effect.value ?? undefined;
        break;
      case "once":
        this.#tables.remember(task.context.owner, task, effect, {
          taskId: task.head.task.taskId,
          seq: task.head.seq,
        });
        break;
      case "contextState":
        task.context.state = effect.value ?? undefined;
        break;
      default:
        // Leases and runs are part of the head.
        break;
    }
  }

  #applyToContext(context: StoredContext, effect: ContextEffect): void {
    switch (effect.effect) {
      case "contextState":
        context.state = effect.value ?? undefined;
        break;
      case "contextMessage":
        this.#tables.say(context, { kind: "message", json: effect.json, time: effect.time });
        this.#tables.touch(context, effect.time);
        break;
      case "once":
        this.#tables.remember(context.owner, context, effect, { seq: 0 });
        this.#tables.touch(context, effect.now);
        break;
    }
  }

  #duplicate(owner: Owner, effects: readonly (TaskEffect | ContextEffect)[]): OnceRecord | undefined {
    for (const effect of effects) {
      const known = effect.effect === "once" ? this.#tables.key(owner, effect.key, effect.now) : undefined;
      if (known !== undefined) return known;
    }
    return undefined;
  }
}

/** At most the characters of what is asked for, and at most as many as the bytes that it takes. */
function lengthOf({ base, status, metadata, history, artifacts }: TaskPieces, options: LoadOptions): number {
  const lists = [[base, status ?? ""], metadata, history.map(({ json }) => json), options.artifacts ? artifacts : []];
  return lists.flat().reduce((sum, json) => sum + json.length, 0);
}

/** Without joining what is in pieces. */
function bytesOf(task: SnapshotText): number {
  const { pieces } = task;
  return pieces === undefined ? utf8Length(task.json) : pieces.reduce((sum, piece) => sum + utf8Length(piece), 0);
}

function withCheckpoint({ head, checkpoint }: StoredTask): TaskHead {
  return checkpoint === undefined ? head : { ...head, checkpoint };
}

/** Takes the first items off a list, as long as they are due and at most `limit`; `take` removes one. */
function drain<Key, Item extends Key>(
  list: SortedList<Key, Item>,
  limit: number,
  due: (item: Item) => boolean,
  take: (item: Item) => void,
): { count: number; more: boolean } {
  let count = 0;
  for (let item = list.first(); item !== undefined && due(item); item = list.first()) {
    if (count >= limit) return { count, more: true };
    take(item);
    count += 1;
  }
  return { count, more: false };
}
