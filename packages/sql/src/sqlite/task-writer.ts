import type { TaskHead } from "@parley/a2a/store";
import type { Driver, Value } from "./driver.ts";
import type { KnownTask } from "./known-tasks.ts";
import { insertInto, ManyRows, statementOf } from "./many-rows.ts";
import { stateNumber } from "./rows.ts";
import { encodeName } from "./text.ts";

// The columns that an append changes: those that any does, those that no index has, those of the lists, those of the runs.
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
/** For tasks of which nothing but the log has changed, as it is with each chunk. */
const growTasks = statementOf(growing.length + 1, (values) => {
  const set = growing.map((name, at) => `${name} = v.column${at + 2}`).join(", ");
  return `UPDATE tasks SET ${set} FROM (${values}) v WHERE number = v.column1`;
});

function updateOf(names: readonly string[]): string {
  return `UPDATE tasks SET ${names.map((name) => `${name} = ?`).join(", ")} WHERE number = ?`;
}

/** Writes the rows of tasks: those that are new and those that have only grown together, each other one by itself. */
export class TaskWriter {
  readonly #driver: Driver;
  readonly #new: ManyRows;
  readonly #grown: ManyRows;

  constructor(driver: Driver) {
    this.#driver = driver;
    this.#new = new ManyRows(driver, insertTasks);
    this.#grown = new ManyRows(driver, growTasks);
  }

  /** The task as it stands at the end of a transaction. */
  write(task: KnownTask): void {
    if (task.stored === undefined) this.#insert(task);
    else if (hasGrown(task, task.stored))
      this.#grown.add(task.row.number, task.head.seq, task.head.generation, task.head.bytes);
    else if (task.head !== task.stored) this.#update(task, task.stored);
    task.stored = task.head;
    task.storedStatus = task.statusSeq;
  }

  /** Writes what was gathered. */
  end(): void {
    this.#new.write();
    this.#grown.write();
  }

  #insert(task: KnownTask): void {
    const { row, head } = task;
    const identity = [row.number, row.agent, row.owner, row.context, encodeName(head.task.taskId), head.firstSeq];
    this.#new.add(...identity, ...plainOf(task), ...placingOf(head), ...owningOf(head));
  }

  /** An index is written anew wherever one of its columns is named: a chunk names none. */
  #update(task: KnownTask, stored: TaskHead): void {
    const { head, row } = task;
    const moved = head.state !== stored.state || head.statusTime !== stored.statusTime;
    const turned = head.leaseUntil !== stored.leaseUntil || head.run?.turn !== stored.run?.turn;
    const sql = moved ? (turned ? updates.both : updates.placing) : turned ? updates.owning : updates.plain;
    const values = [...plainOf(task), ...(moved ? placingOf(head) : []), ...(turned ? owningOf(head) : [])];
    this.#driver.prepare(sql).run(...values, row.number);
  }
}

/** Whether the log of a task is longer and nothing else of its row has changed; metadata comes with a status. */
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
