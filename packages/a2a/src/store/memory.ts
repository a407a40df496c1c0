import type { LogRecord, Message } from "../model/index.ts";
import { assemble, messagesOf } from "./assemble.ts";
import { MemoryTables, piecesOf, type StoredContext, type StoredTask } from "./memory-tables.ts";
import type {
  AppendItem,
  AppendOutcome,
  ContextAppend,
  ContextEffect,
  ContextKey,
  Conversation,
  ListQuery,
  LoadOptions,
  LogPage,
  OnceRecord,
  Owner,
  ReadOptions,
  Scope,
  Snapshot,
  Store,
  SweepOptions,
  SweepReport,
  TaskEffect,
  TaskHead,
  TaskPage,
} from "./port.ts";
import type { SortedList } from "./sorted-list.ts";
import { newestFirst } from "./task-index.ts";
import { decide, readItem, type ReadItem } from "./transition.ts";
import { unavailable } from "./unavailable.ts";

/**
 * A store in the memory of this process: everything is gone when the process ends. For tests, for development, and for
 * agents whose tasks need not outlive them. It grows until `sweep` deletes.
 */
export function memoryStore(): Store {
  return new MemoryStore();
}

class MemoryStore implements Store {
  #tables = new MemoryTables();
  #closed = false;

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
    const task = this.#tables.find(scope, taskId);
    return task && assemble(piecesOf(task, options.history), options);
  }

  async read(scope: Scope, taskId: string, { after, limit, kinds }: ReadOptions): Promise<LogPage | undefined> {
    this.#check();
    const task = this.#tables.find(scope, taskId);
    if (task === undefined) return undefined;
    const records: LogRecord[] = [];
    for (
      let i = Math.max(0, after - task.head.firstSeq + 1);
      i < task.records.length && records.length < limit;
      i += 1
    ) {
      const record = task.records[i];
      if (record !== undefined && (kinds === undefined || kinds.includes(record.kind))) records.push(record);
    }
    return { records, head: task.head };
  }

  async list(scope: Scope, query: ListQuery): Promise<TaskPage> {
    this.#check();
    const indexes = this.#tables.indexesOf(scope, query.contextId);
    const found = indexes
      .flatMap((index) => index.page(query))
      .sort(newestFirst)
      .slice(0, query.limit + 1);
    const page = found.slice(0, query.limit);
    const last = page.at(-1);
    const tasks = page.map((task) => assemble(piecesOf(task, query.history), query));
    const total = indexes.reduce((sum, index) => sum + index.count(query), 0);
    if (found.length <= query.limit || last === undefined) return { tasks, total };
    return { tasks, total, next: { statusTime: last.statusTime, number: last.number } };
  }

  once(owner: Owner, key: string, now: number): OnceRecord | undefined {
    this.#check();
    return this.#tables.key(owner, key, now);
  }

  async conversation({ agent, owner, contextId }: ContextKey, limit: number): Promise<Conversation> {
    this.#check();
    const context = this.#tables.owner({ agent, owner })?.contexts.get(contextId);
    if (context === undefined) return { messages: [] };
    const messages = context.messages
      .last(limit)
      .flatMap(({ event }) =>
        messagesOf(event).map((json) => ({ time: event.time, message: JSON.parse(json) as Message })),
      );
    return {
      ...(context.state !== undefined && { state: context.state }),
      messages: messages.slice(Math.max(0, messages.length - limit)),
    };
  }

  async claimable(now: number, limit: number): Promise<readonly TaskHead[]> {
    this.#check();
    return this.#tables.runs
      .after(undefined, limit)
      .filter((task) => (task.due ?? 0) <= now)
      .map(withCheckpoint);
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
      (task) => this.#tables.compact(task),
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
