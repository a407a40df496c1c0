import type {
  AppendOutcome,
  ContextKey,
  ContextMessageEffect,
  Owner,
  ReadRecord,
  TaskHead,
  TaskKey,
} from "@parley/server/internal/store/index";
import { addsTexts, applyAll, grownTask, type Changes, type FoundContext, type ReadAppend } from "../shared/batch.ts";
import { indexTask } from "../shared/search.ts";
import { contextPath, readKnown, taskPath, type Known } from "./batch-reads.ts";
import { run } from "./dialect.ts";
import { ActRows, ValueRows, type FeatureRows, type Keys } from "./effects.ts";
import { together, type Sql } from "./schema.ts";
import { ScopeChanges, type ScopeNames } from "./scopes.ts";
import { search } from "./search.ts";
import { LogWriter, ReplyWriter, TaskWriter, type LockedTask } from "./task-writer.ts";

/** Another transaction created the same row first. This error has the code of a serialization failure, so the transaction is retried. */
class Overtaken extends Error {
  readonly code: string = "40001";
}

/**
 * Applies any number of items in one transaction with three round trips: read and lock, decide, write. Calls `onPlaces` with the number
 * that the transaction takes from the sequence `places`.
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
  readonly keys: Keys;
  readonly features: FeatureRows;
  readonly values = new ValueRows();
  #acts: ActRows | undefined;
  /** Tasks that this batch has changed or created. */
  readonly #changed = new Set<LockedTask>();
  /** Tasks whose history has grown, if texts are indexed. */
  readonly #grown = new Set<LockedTask>();

  constructor(known: Known) {
    this.#known = known;
    this.keys = known.keys;
    this.features = known.features;
  }

  get acts(): ActRows {
    return (this.#acts ??= new ActRows());
  }

  /** Always false, because the rows that the items name were already read. */
  isNew(): boolean {
    return false;
  }

  find({ agent, owner, taskId }: TaskKey): LockedTask | "foreign" | undefined {
    const agentId = this.#known.names.find(agent);
    const task = agentId === undefined ? undefined : this.#known.tasks.get(taskPath(agentId, taskId));
    if (task === undefined) return undefined;
    return task.row.owner === this.ownerId({ agent, owner }) ? task : "foreign";
  }

  ownerId({ agent, owner }: Owner): number | undefined {
    return this.#known.names.find(agent, owner);
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

  context({ agent, owner, contextId }: ContextKey): FoundContext {
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
    if (this.#known.indexes && addsTexts(read)) this.#grown.add(task);
    const place = read.inHistory ? { context, place: this.#known.place() } : undefined;
    this.#log.add(number, seq, place, base, read);
  }

  addReply(context: number, effect: ContextMessageEffect): void {
    this.#replies.add(context, this.#known.place(), effect);
  }

  touch({ id, owner, name }: FoundContext, time: number): void {
    this.#scopes.touch(id, owner, name, time);
  }

  /** Writes in the same order in every transaction, so that transactions never deadlock. */
  async write(sql: Sql): Promise<void> {
    const tasks = new TaskWriter();
    for (const task of this.#changed) tasks.add(task);
    const counts = (): Promise<void> => this.#scopes.writeCounts(sql);
    const [contexts, , , newKeys, newTasks] = await together([
      this.#scopes.writeContexts(sql),
      this.values.write(sql),
      this.#replies.write(sql),
      this.keys.write(sql),
      tasks.write(sql),
      this.#log.write(sql),
      this.features.write(sql),
      this.#acts?.write(sql) ?? Promise.resolve(),
      // Written last, because other transactions wait for these rows.
      this.#grown.size === 0 ? counts() : Promise.resolve(),
    ]);
    if (!contexts || !newKeys || !newTasks) throw new Overtaken("A task, a context or a key was created meanwhile");
    for (const task of this.#grown) await run(sql, indexTask(search, grownTask(task)));
    if (this.#grown.size > 0) await counts();
  }

  /** A missing context is created with the changes of this batch. */
  #context(agent: string, ownerName: string, name: string): FoundContext {
    const owner = this.#known.names.find(agent, ownerName) as number;
    const path = contextPath(owner, name);
    let id = this.#known.contexts.get(path);
    if (id === undefined) this.#known.contexts.set(path, (id = this.#known.number()));
    return { id, owner, name };
  }
}
