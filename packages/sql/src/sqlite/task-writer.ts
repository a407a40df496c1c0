import { BoundedMap, memoryOf, type ReadItem, type TaskHead } from "@parley/a2a/store";
import type { Driver, Value } from "./driver.ts";
import { count, encodeName, insertInto, ManyRows, statementOf, stateNumber, type TaskRow } from "./rows.ts";
import { ScopeIds } from "./scopes.ts";
import { isIndexed } from "./search-index.ts";

/** A task as a writer knows it. */
export interface KnownTask {
  readonly row: Pick<TaskRow, "number" | "agent" | "owner" | "context">;
  /** The head in the table; absent until the transaction that creates the task ends. */
  stored: TaskHead | undefined;
  storedStatus: number;
  head: TaskHead;
  statusSeq: number;
  hasMetadata: boolean;
  /** Whether features may keep rows with the task. */
  hasFeatures: boolean;
}

/** Bytes that the objects of one task take. */
const objectBytes = 600;
/** Bytes of memory for all known tasks. */
const mostBytes = 8 << 20;

/** What a writer remembers from one transaction to the next. Call `forget` after a transaction that was rolled back. */
export class WriterMemory {
  readonly scopes: ScopeIds;
  /** Unfinished tasks as the last transaction left them, so that a chunk does not read the row of its task. */
  readonly tasks: BoundedMap<KnownTask>;
  readonly #driver: Driver;
  #version: number | undefined;
  /** Whether texts are indexed. `undefined`: it has to be looked up. */
  #indexes: boolean | undefined;

  constructor(driver: Driver) {
    this.#driver = driver;
    this.scopes = new ScopeIds(driver);
    const bytesOf = (key: string, { head: { contextId, holder } }: KnownTask): number =>
      objectBytes + memoryOf(key, key, contextId, holder);
    this.tasks = new BoundedMap({ bytes: mostBytes, bytesOf });
  }

  /** Call it in a transaction. Forgets the tasks if another connection has committed since; agents and owners never change. */
  check(): void {
    const version = dataVersion(this.#driver);
    if (version !== this.#version) {
      this.tasks.clear();
      this.#indexes = undefined;
    }
    this.#version = version;
  }

  /** Whether full text search is on. Call it in a transaction, after `check`. */
  get indexes(): boolean {
    return (this.#indexes ??= isIndexed(this.#driver));
  }

  forget(): void {
    this.scopes.forget();
    this.tasks.clear();
    this.#indexes = undefined;
  }
}

/** A number that changes with each commit of another connection. */
export function dataVersion(driver: Driver): number {
  if (driver.isAlone === true) return 0;
  return count(driver.prepare("PRAGMA data_version").get());
}

type Status = Pick<KnownTask, "statusSeq" | "hasMetadata">;

/** The seq of the last status after an item, and whether any record has metadata. */
export function statusOf({ records }: ReadItem, { seq }: TaskHead, before: Status): Status {
  const last = records.findLastIndex(({ record }) => record.kind === "statusUpdate");
  return {
    statusSeq: last < 0 ? before.statusSeq : seq - records.length + last + 1,
    hasMetadata: before.hasMetadata || records.some((read) => read.hasMetadata),
  };
}

// The columns that an append changes: of every append, without an index, of the lists, of the runs.
const growing = ["seq", "generation", "bytes"];
const running = ["run_attempt", "run_input", "run_deaths", "run_alone"];
const plain = [...growing, "fence", "status_seq", "has_metadata", "holder", ...running];
const placing = ["state", "status_time"];
const owning = ["lease_until", "run_turn"];

const updates = {
  plain: updateOf(plain),
  placing: updateOf([...plain, ...placing]),
  owning: updateOf([...plain, ...owning]),
  both: updateOf([...plain, ...placing, ...owning]),
};
const identity = ["number", "agent", "owner", "context", "id", "first_seq"];
const insertTasks = insertInto("tasks", [...identity, ...plain, ...placing, ...owning]);
/** For tasks whose log alone has changed, as with each chunk. */
const growTasks = statementOf(growing.length + 1, (values) => {
  const set = growing.map((name, at) => `${name} = v.column${at + 2}`).join(", ");
  return `UPDATE tasks SET ${set} FROM (${values}) v WHERE number = v.column1`;
});

function updateOf(names: readonly string[]): string {
  return `UPDATE tasks SET ${names.map((name) => `${name} = ?`).join(", ")} WHERE number = ?`;
}

/** Writes the rows of tasks: new ones together, those whose log alone has grown together, and each other one alone. */
export class TaskWriter {
  readonly #driver: Driver;
  readonly #new: ManyRows;
  readonly #grown: ManyRows;

  constructor(driver: Driver) {
    this.#driver = driver;
    this.#new = new ManyRows(driver, insertTasks);
    this.#grown = new ManyRows(driver, growTasks);
  }

  /** Call it at the end of a transaction, once for each task. */
  write(task: KnownTask): void {
    if (task.stored === undefined) this.#insert(task);
    else if (hasGrown(task, task.stored))
      this.#grown.add(task.row.number, task.head.seq, task.head.generation, task.head.bytes);
    else if (task.head !== task.stored) this.#update(task, task.stored);
    task.stored = task.head;
    task.storedStatus = task.statusSeq;
  }

  /** Writes the rows that were collected. */
  end(): void {
    this.#new.write();
    this.#grown.write();
  }

  #insert(task: KnownTask): void {
    const { row, head } = task;
    const identity = [row.number, row.agent, row.owner, row.context, encodeName(head.task.taskId), head.firstSeq];
    this.#new.add(...identity, ...plainOf(task), ...placingOf(head), ...owningOf(head));
  }

  /** SQLite rewrites an index entry when a statement names one of its columns: an update names only those that changed. */
  #update(task: KnownTask, stored: TaskHead): void {
    const { head, row } = task;
    const moved = head.state !== stored.state || head.statusTime !== stored.statusTime;
    const turned = head.leaseUntil !== stored.leaseUntil || head.run?.turn !== stored.run?.turn;
    const sql = moved ? (turned ? updates.both : updates.placing) : turned ? updates.owning : updates.plain;
    const values = [...plainOf(task), ...(moved ? placingOf(head) : []), ...(turned ? owningOf(head) : [])];
    this.#driver.prepare(sql).run(...values, row.number);
  }
}

/** Whether the log of a task is longer and nothing else of its row has changed. Metadata changes with a status only. */
function hasGrown({ head, statusSeq, storedStatus }: KnownTask, stored: TaskHead): boolean {
  if (head.seq === stored.seq || statusSeq !== storedStatus) return false;
  const sameStatus = head.state === stored.state && head.statusTime === stored.statusTime;
  const sameLease =
    head.fence === stored.fence && head.holder === stored.holder && head.leaseUntil === stored.leaseUntil;
  return sameStatus && sameLease && head.run === stored.run;
}

function plainOf({
  head,
  statusSeq,
  hasMetadata,
}: Pick<KnownTask, "head" | "statusSeq" | "hasMetadata">): readonly Value[] {
  const { seq, generation, bytes, fence, holder, run } = head;
  const name = holder === undefined ? null : encodeName(holder);
  const status = [statusSeq, hasMetadata ? 1 : 0];
  const trial = [run?.deaths ?? null, run?.alone === true ? 1 : null];
  return [seq, generation, bytes, fence, ...status, name, run?.attempt ?? null, run?.input ?? null, ...trial];
}

function placingOf({ state, statusTime }: TaskHead): readonly Value[] {
  return [stateNumber(state), statusTime];
}

function owningOf({ leaseUntil, run }: TaskHead): readonly Value[] {
  return [leaseUntil ?? null, run?.turn ?? null];
}
