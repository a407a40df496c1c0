import type {
  AppendOutcome,
  ContextAppend,
  ContextMessageEffect,
  FeatureEffect,
  OnceEffect,
  OnceRecord,
  Owner,
  ReadRecord,
  TaskAppend,
  TaskHead,
} from "@parley/server/internal/store/index";
import {
  applyAll,
  isPause,
  type Changes,
  type Found,
  type FoundContext,
  type KeyPlace,
  type ReadAppend,
  type ValueTable,
} from "../shared/batch.ts";
import { indexTask } from "../shared/search.ts";
import { contextPath, readKnown, taskPath, type Known } from "./batch-reads.ts";
import { run } from "./dialect.ts";
import { ValueRows } from "./effects.ts";
import { together, type Sql } from "./schema.ts";
import { ScopeChanges, type ScopeNames } from "./scopes.ts";
import { search } from "./search.ts";
import { LogWriter, ReplyWriter, TaskWriter, type LockedTask } from "./task-writer.ts";

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
  const outcomes = applyAll(batch, items);
  await batch.write(sql);
  return outcomes;
}

/** The changes of one transaction. Nothing is written before `write`. */
class Batch implements Changes<LockedTask> {
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

  find({ task: key, effects = [] }: TaskAppend): Found<LockedTask> {
    const once = this.duplicate(key, effects);
    const agent = this.#known.names.find(key.agent);
    const task = agent === undefined ? undefined : this.#known.tasks.get(taskPath(agent, key.taskId));
    const isOwn = task?.row.owner === this.#known.names.find(key.agent, key.owner);
    return { ...(task !== undefined && { task: isOwn ? task : "foreign" }), ...(once !== undefined && { once }) };
  }

  duplicate(
    key: Owner,
    effects: NonNullable<TaskAppend["effects"]> | ContextAppend["effects"],
  ): OnceRecord | undefined {
    const owner = this.#known.names.find(key.agent, key.owner);
    if (owner === undefined) return undefined;
    for (const effect of effects) {
      if (effect.effect !== "once") continue;
      const known = this.#known.keys.find(owner, effect.key, effect.now);
      if (known !== undefined) return known;
    }
    return undefined;
  }

  refusalOf(task: LockedTask | undefined, effects: readonly FeatureEffect[]): "changed" | "full" | undefined {
    return this.#known.features.refusalOf(task?.row.number, effects);
  }

  create(head: TaskHead): LockedTask {
    const { agent: agentName, owner: ownerName, taskId } = head.task;
    const agent = this.#known.names.find(agentName) as number;
    const { id: context, owner } = this.#context(agentName, ownerName, head.contextId);
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
    this.#known.tasks.set(taskPath(agent, taskId), task);
    return task;
  }

  context({ agent, owner, contextId }: ContextAppend["context"]): FoundContext {
    const context = this.#context(agent, owner, contextId);
    this.touch(context, 0);
    return context;
  }

  changed(task: LockedTask, before: TaskHead | undefined): void {
    task.touched = Math.max(task.touched, task.head.statusTime);
    this.#changed.add(task);
    this.#scopes.move(task, before, task.head);
  }

  addRecord(task: LockedTask, seq: number, read: ReadRecord, base: string | undefined): void {
    const { number, context } = task.row;
    if (this.#known.indexes && (read.inHistory || isPause(read.record.state))) this.#grown.add(task);
    const place = read.inHistory ? { context, place: this.#known.place() } : undefined;
    this.#log.add(number, seq, place, base, read);
  }

  addReply(context: number, effect: ContextMessageEffect): void {
    this.#replies.add(context, this.#known.place(), effect);
  }

  touch({ id, owner, name }: FoundContext, time: number): void {
    this.#scopes.touch(id, owner, name, time);
  }

  setValue(table: ValueTable, id: number, value: string | null): void {
    this.#values.set(table, id, value);
  }

  addKey(effect: OnceEffect, place: KeyPlace, at: Pick<OnceRecord, "seq" | "taskId">): void {
    this.#known.keys.add(effect, place, at);
  }

  applyFeature(task: LockedTask, effect: FeatureEffect): void {
    task.hasFeatures ||= effect.op === "set";
    if (task.hasFeatures) this.#known.features.apply(task.row, effect);
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
      const grown = { number: row.number, owner: row.owner, seq, isActive: !isPause(state), firstSeq };
      await run(sql, indexTask(search, grown));
    }
    if (this.#grown.size > 0) await counts();
  }

  /** A context that is missing is created with the changes of this batch. */
  #context(agent: string, ownerName: string, name: string): FoundContext {
    const owner = this.#known.names.find(agent, ownerName) as number;
    const path = contextPath(owner, name);
    let id = this.#known.contexts.get(path);
    if (id === undefined) this.#known.contexts.set(path, (id = this.#known.number()));
    return { id, owner, name };
  }
}
