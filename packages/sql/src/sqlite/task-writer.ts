import { BoundedMap, memoryOf } from "@parley/a2a/internal/base/bounded-map";
import type { TaskHead } from "@parley/server/internal/store/index";
import {
  growing,
  hasGrown,
  identity,
  identityOf,
  owning,
  owningOf,
  placing,
  placingOf,
  plain,
  plainOf,
  type KnownTask,
} from "../shared/batch.ts";
import type { Driver } from "./driver.ts";
import { count, insertInto, ManyRows, statementOf } from "./rows.ts";
import { ScopeIds } from "./scopes.ts";
import { isIndexed } from "./search.ts";

/** Memory of the objects of one task, in bytes. */
const objectBytes = 600;
/** Bytes of memory for all known tasks. */
const maxBytes = 8 << 20;

/** Caches a writer's data between transactions. Call `forget` after a rollback. */
export class WriterMemory {
  readonly scopes: ScopeIds;
  /** Caches unfinished tasks: to store a chunk, the writer need not read its task's row. */
  readonly tasks: BoundedMap<KnownTask>;
  readonly #driver: Driver;
  #version: number | undefined;
  /** Whether texts are indexed. `undefined` until read. */
  #indexes: boolean | undefined;

  constructor(driver: Driver) {
    this.#driver = driver;
    this.scopes = new ScopeIds(driver);
    const bytesOf = (key: string, { head: { contextId, holder } }: KnownTask): number =>
      objectBytes + memoryOf(key, key, contextId, holder);
    this.tasks = new BoundedMap({ bytes: maxBytes, bytesOf });
  }

  /** Call this in a transaction. Forgets everything if another connection has committed. */
  check(): void {
    const version = dataVersion(this.#driver);
    if (version !== this.#version) this.forget();
    this.#version = version;
  }

  /** Whether full text search is on. Call this in a transaction, after `check`. */
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

const updates = {
  plain: updateOf(plain),
  placing: updateOf([...plain, ...placing]),
  owning: updateOf([...plain, ...owning]),
  both: updateOf([...plain, ...placing, ...owning]),
};
const insertTasks = insertInto("tasks", [...identity, ...plain, ...placing, ...owning]);
/** For tasks whose only change is a longer log, such as after each chunk. */
const growTasks = statementOf(growing.length + 1, (values) => {
  const set = growing.map((name, at) => `${name} = v.column${at + 2}`).join(", ");
  return `UPDATE tasks SET ${set} FROM (${values}) v WHERE number = v.column1`;
});

function updateOf(names: readonly string[]): string {
  return `UPDATE tasks SET ${names.map((name) => `${name} = ?`).join(", ")} WHERE number = ?`;
}

/** Writes task rows. Inserts are batched, and so are updates of tasks whose log only grew; other tasks are updated one by one. */
export class TaskWriter {
  readonly #driver: Driver;
  readonly #new: ManyRows;
  readonly #grown: ManyRows;

  constructor(driver: Driver) {
    this.#driver = driver;
    this.#new = new ManyRows(driver, insertTasks);
    this.#grown = new ManyRows(driver, growTasks);
  }

  /** Call this at the end of a transaction, once for each task. */
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
    const { head } = task;
    this.#new.add(...identityOf(task), ...plainOf(task), ...placingOf(head), ...owningOf(head));
  }

  /** Updates only changed columns, because SQLite rewrites the index entries of all columns that a statement names. */
  #update(task: KnownTask, stored: TaskHead): void {
    const { head, row } = task;
    const moved = head.state !== stored.state || head.statusTime !== stored.statusTime;
    const turned = head.leaseUntil !== stored.leaseUntil || head.run?.turn !== stored.run?.turn;
    const sql = moved ? (turned ? updates.both : updates.placing) : turned ? updates.owning : updates.plain;
    const values = [...plainOf(task), ...(moved ? placingOf(head) : []), ...(turned ? owningOf(head) : [])];
    this.#driver.prepare(sql).run(...values, row.number);
  }
}
