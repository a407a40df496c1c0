import {
  baseOf,
  decide,
  type AppendOutcome,
  type ContextAppend,
  type ContextEffect,
  type OnceRecord,
  type Owner,
  type ReadItem,
  type TaskEffect,
  type TaskHead,
  type TaskKey,
} from "@parley/server/internal/store/index";
import { isPause, statusOf } from "../shared/known-task.ts";
import { contextPath, readKnown, taskPath, type Known, type ReadAppend } from "./batch-reads.ts";
import { LogWriter, ReplyWriter } from "./log-writer.ts";
import { maxSeq } from "./rows.ts";
import { together, type Sql } from "./schema.ts";
import { ScopeChanges } from "./scope-changes.ts";
import type { ScopeNames } from "./scopes.ts";
import { indexTask } from "./search-index.ts";
import { TaskWriter, type LockedTask } from "./task-writer.ts";
import { ValueRows } from "./value-rows.ts";

/**
 * Another transaction has created what this one was about to create. The code is that of a serialization failure, after which a
 * transaction runs again.
 */
class Overtaken extends Error {
  readonly code: string = "40001";
}

/**
 * Applies the items in one transaction, whose statements travel in three exchanges whatever the number of items: what the items name is
 * locked and read, the outcomes are decided here, and all changes are written. `onPlaces`: told what it took from the sequence `places`.
 */
export async function applyItems(
  sql: Sql,
  names: ScopeNames,
  items: readonly ReadAppend[],
  onPlaces?: (places: number) => void,
): Promise<readonly AppendOutcome[]> {
  const batch = new Batch(await readKnown(sql, names, items, onPlaces));
  const outcomes = items.map((item) => ("item" in item ? batch.appendTask(item) : batch.appendContext(item)));
  await batch.write(sql);
  return outcomes;
}

/** The changes of one transaction. Nothing is written before `write`. */
class Batch {
  readonly #known: Known;
  readonly #scopes = new ScopeChanges();
  readonly #log = new LogWriter();
  readonly #replies = new ReplyWriter();
  readonly #values = new ValueRows();
  /** Tasks that this batch has changed or created. */
  readonly #changed = new Set<LockedTask>();
  /** Tasks whose history has grown, where texts are indexed. */
  readonly #grown = new Set<LockedTask>();

  constructor(known: Known) {
    this.#known = known;
  }

  appendTask(read: ReadItem): AppendOutcome {
    const { item } = read;
    const found = this.#find(item.task);
    const own = found === "foreign" ? undefined : found;
    const once = this.#duplicate(item.task, item.effects ?? []);
    if (once !== undefined) return { ok: false, reason: "duplicate", once, ...(own && { head: own.head }) };
    // To anyone but its owner a task does not exist, except that its id cannot be used again.
    if (found === "foreign" && item.create !== undefined) return { ok: false, reason: "exists" };
    const head = decide(read, own?.head);
    if (typeof head === "string") return { ok: false, reason: head, ...(own && { head: own.head }) };
    const reason = this.#known.features.refusalOf(own?.row.number, read.features);
    if (reason !== undefined) return { ok: false, reason, ...(own && { head: own.head }) };
    if (head.seq > maxSeq) throw new RangeError(`A task has at most ${maxSeq} records`);

    const before = own?.head;
    const task = own ?? this.#create(item.task, head);
    Object.assign(task, statusOf(read, head, task));
    task.head = head;
    task.touched = Math.max(task.touched, head.statusTime);
    this.#changed.add(task);
    this.#addRecords(task, read);
    this.#scopes.move(task, before, head);
    for (const effect of item.effects ?? []) this.#applyToTask(task, effect);
    return { ok: true, seq: head.seq, fence: head.fence };
  }

  appendContext({ context: key, effects }: ContextAppend): AppendOutcome {
    const once = this.#duplicate(key, effects);
    if (once !== undefined) return { ok: false, reason: "duplicate", once };
    const owner = this.#ownerOf(key);
    const context = this.#context(owner, key.contextId);
    this.#scopes.touch(context, owner, key.contextId, 0);
    for (const effect of effects) this.#applyToContext(context, owner, key.contextId, effect);
    return { ok: true, seq: 0, fence: 0 };
  }

  /** Writes in an order that is the same for every transaction, so that none waits for one that waits for it. */
  async write(sql: Sql): Promise<void> {
    const tasks = new TaskWriter();
    for (const task of this.#changed) tasks.add(task);
    const { keys, features } = this.#known;
    const counts = (): Promise<void> => this.#scopes.writeCounts(sql);
    const [contexts, , , newKeys, newTasks] = await together([
      this.#scopes.writeContexts(sql),
      this.#values.write(sql),
      this.#replies.write(sql),
      keys.write(sql),
      tasks.write(sql),
      this.#log.write(sql),
      features.write(sql),
      // Others wait for these rows, so nothing comes after them.
      this.#grown.size === 0 ? counts() : Promise.resolve(),
    ]);
    if (!contexts || !newKeys || !newTasks) throw new Overtaken("A task, a context or a key was created meanwhile");
    for (const { row, head } of this.#grown) {
      const { state, seq, firstSeq } = head;
      await indexTask(sql, { number: row.number, owner: row.owner, seq, isActive: !isPause(state), firstSeq });
    }
    if (this.#grown.size > 0) await counts();
  }

  #find({ agent, owner, taskId }: TaskKey): LockedTask | "foreign" | undefined {
    const agentId = this.#known.names.find(agent);
    const task = agentId === undefined ? undefined : this.#known.tasks.get(taskPath(agentId, taskId));
    if (task === undefined) return undefined;
    return task.row.owner === this.#known.names.find(agent, owner) ? task : "foreign";
  }

  #create(key: TaskKey, head: TaskHead): LockedTask {
    const agent = this.#known.names.find(key.agent) as number;
    const owner = this.#ownerOf(key);
    const context = this.#context(owner, head.contextId);
    const task: LockedTask = {
      row: { number: this.#known.number(), agent, owner, context },
      stored: undefined,
      storedStatus: 0,
      head,
      statusSeq: 0,
      hasMetadata: false,
      hasFeatures: false,
      storedFeatures: false,
      touched: 0,
    };
    this.#known.tasks.set(taskPath(agent, key.taskId), task);
    return task;
  }

  #ownerOf({ agent, owner }: Owner): number {
    return this.#known.names.find(agent, owner) as number;
  }

  /** The id of a context, which is created with the changes of this batch where it is missing. */
  #context(owner: number, name: string): number {
    const path = contextPath(owner, name);
    let context = this.#known.contexts.get(path);
    if (context === undefined) this.#known.contexts.set(path, (context = this.#known.number()));
    return context;
  }

  #addRecords(task: LockedTask, { records }: ReadItem): void {
    const { number, context } = task.row;
    let seq = task.head.seq - records.length;
    for (const read of records) {
      seq += 1;
      if (this.#known.indexes && (read.inHistory || isPause(read.record.state))) this.#grown.add(task);
      const place = read.inHistory ? { context, place: this.#known.place() } : undefined;
      this.#log.add(number, seq, place, seq === 1 ? baseOf(read.record) : undefined, read);
    }
  }

  #applyToTask(task: LockedTask, effect: TaskEffect): void {
    const { number, context } = task.row;
    switch (effect.effect) {
      case "checkpoint":
        this.#values.set("checkpoints", number, effect.value);
        break;
      case "taskState":
        this.#values.set("task_states", number, effect.value);
        break;
      case "contextState":
        this.#values.set("context_states", context, effect.value);
        break;
      case "once":
        this.#known.keys.addToTask(effect, task.row, task.head);
        break;
      case "feature":
        task.hasFeatures ||= effect.op === "set";
        if (task.hasFeatures) this.#known.features.apply(task.row, effect);
        break;
      case "lease":
      case "run":
        // They are in the head.
        break;
    }
  }

  #applyToContext(context: number, owner: number, name: string, effect: ContextEffect): void {
    switch (effect.effect) {
      case "contextState":
        this.#values.set("context_states", context, effect.value);
        break;
      case "contextMessage":
        this.#replies.add(context, this.#known.place(), effect);
        this.#scopes.touch(context, owner, name, effect.time);
        break;
      case "once":
        this.#known.keys.addToContext(effect, owner, context);
        this.#scopes.touch(context, owner, name, Math.ceil(effect.now));
        break;
    }
  }

  #duplicate(key: Owner, effects: readonly (TaskEffect | ContextEffect)[]): OnceRecord | undefined {
    const owner = this.#known.names.find(key.agent, key.owner);
    if (owner === undefined) return undefined;
    for (const effect of effects) {
      if (effect.effect !== "once") continue;
      const known = this.#known.keys.find(owner, effect.key, effect.now);
      if (known !== undefined) return known;
    }
    return undefined;
  }
}
