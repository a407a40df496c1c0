import type { OnceEffect, OnceRecord, Owner, TaskHead } from "@parley/server/internal/store/index";
import type { Row, Value } from "./driver.ts";
import {
  decodeName,
  encodeJson,
  encodeName,
  indexName,
  insertInto,
  int,
  optional,
  rowsOf,
  taskId,
  text,
  timeLimit,
  write,
  type Column,
  type TaskRow,
} from "./rows.ts";
import { together, type Sql } from "./schema.ts";

// Idempotency keys.

const keyColumns = `k.hash, k.seq, ${taskId}, k.answer, k.until, k.owner, k.name`;
const keyTables = "parley.keys k LEFT JOIN parley.tasks t ON t.number = k.task";

/** The record of a key that has not expired. */
export async function readOnce(sql: Sql, owner: Owner, key: string, now: number): Promise<OnceRecord | undefined> {
  const [row] = await sql(
    `SELECT ${keyColumns} FROM parley.scopes a JOIN parley.scopes o ON o.parent = a.id JOIN parley.keys k ON k.owner = o.id
       LEFT JOIN parley.tasks t ON t.number = k.task
     WHERE a.parent = 0 AND a.name = $1 AND o.name = $2 AND k.name = $3 AND (k.until IS NULL OR k.until > $4)`,
    indexName(owner.agent),
    indexName(owner.owner),
    indexName(key),
    timeLimit(Math.floor(now)),
  );
  return row && { key, ...recordOf(row) };
}

function recordOf(row: Row): Omit<OnceRecord, "key"> {
  const task = optional(row, 2);
  const answer = optional(row, 3);
  return {
    hash: decodeName(text(row, 0)),
    seq: int(row, 1),
    ...(typeof task === "string" && { taskId: decodeName(task) }),
    ...(typeof answer === "string" && { answer }),
  };
}

const named: readonly Column[] = [
  ["owner", "bigint"],
  ["name", "text"],
];
const wanted: readonly Column[] = [...named, ["now", "bigint"]];
/** Locked, so that a key that has expired is replaced by one transaction. Others only answer, and wait for nobody. */
const lockExpired = `SELECT k.owner, k.name FROM ${rowsOf(wanted)} JOIN parley.keys k ON k.owner = v.owner AND k.name = v.name
  WHERE k.until <= v.now ORDER BY k.owner, k.name FOR NO KEY UPDATE OF k`;
/** A statement of its own: the one that locks joins a key that was replaced meanwhile to the task that it had before. */
const selectKeys = `SELECT ${keyColumns} FROM ${rowsOf(named)} JOIN ${keyTables} ON k.owner = v.owner AND k.name = v.name`;

const columns: readonly Column[] = [
  ["owner", "bigint"],
  ["name", "text"],
  ["hash", "text"],
  ["task", "bigint"],
  ["context", "bigint"],
  ["seq", "integer"],
  ["until", "bigint"],
  ["answer", "text"],
];
const insertKeys = insertInto("keys", columns, "owner, name", "ON CONFLICT (owner, name) DO NOTHING RETURNING 1");
const replaceKeys = `UPDATE parley.keys k SET hash = v.hash, task = v.task, context = v.context, seq = v.seq, until = v.until,
  answer = v.answer FROM ${rowsOf(columns)} WHERE k.owner = v.owner AND k.name = v.name`;

interface Place {
  readonly owner: number;
  /** The task or the context that it is deleted with: one of the two. */
  readonly task: number | null;
  readonly context: number | null;
}

interface KnownKey {
  readonly record: Omit<OnceRecord, "key">;
  readonly until: number;
}

/** A key of an owner that is used at a time. */
export interface WantedKey {
  readonly owner: number;
  readonly key: string;
  readonly now: number;
}

/** The keys of a transaction: those of the table, which are read when it begins, and new ones, which are added when it ends. */
export class Keys {
  readonly #known = new Map<string, KnownKey>();
  readonly #stored = new Set<string>();
  readonly #locked = new Set<string>();
  readonly #added = new Map<string, readonly Value[]>();

  /** Reads the keys of these owners. */
  async read(sql: Sql, keys: readonly WantedKey[]): Promise<void> {
    const rows = keys.map(({ owner, key, now }) => [owner, indexName(key), timeLimit(Math.floor(now))]);
    const [locked, found] = await together([
      write(sql, lockExpired, rows, wanted.length),
      write(sql, selectKeys, rows, named.length),
    ]);
    for (const row of locked) this.#locked.add(`${int(row, 0)}/${text(row, 1)}`);
    for (const row of found) {
      const record = recordOf(row);
      const until = optional(row, 4);
      const path = `${int(row, 5)}/${text(row, 6)}`;
      this.#stored.add(path);
      this.#known.set(path, { record, until: typeof until === "number" ? until : Infinity });
    }
  }

  find(owner: number, key: string, now: number): OnceRecord | undefined {
    const known = this.#known.get(`${owner}/${indexName(key)}`);
    return known !== undefined && known.until > now ? { key, ...known.record } : undefined;
  }

  /** Adds a key that is deleted with its task. */
  addToTask(effect: OnceEffect, { number, owner }: Pick<TaskRow, "number" | "owner">, { task, seq }: TaskHead): void {
    this.#add(effect, { owner, task: number, context: null }, { seq, taskId: task.taskId });
  }

  /** Adds a key that is deleted with its context. */
  addToContext(effect: OnceEffect, owner: number, context: number): void {
    this.#add(effect, { owner, task: null, context }, { seq: 0 });
  }

  #add({ key, hash, until, answer }: OnceEffect, place: Place, at: Pick<OnceRecord, "seq" | "taskId">): void {
    const { owner, task, context } = place;
    const name = indexName(key);
    const path = `${owner}/${name}`;
    const record = { hash, ...(answer !== undefined && { answer }), ...at };
    this.#known.set(path, { record, until: until ?? Infinity });
    const json = answer === undefined ? null : encodeJson(answer);
    this.#added.set(path, [owner, name, encodeName(hash), task, context, at.seq, until ?? null, json]);
  }

  /** Resolves to `false` where another transaction has added or replaced one of the keys meanwhile. */
  async write(sql: Sql): Promise<boolean> {
    const all = [...this.#added];
    const isNew = ([path]: readonly [string, unknown]): boolean => !this.#stored.has(path);
    const fresh = all.filter(isNew).map(([, row]) => row);
    const again = all.filter((each) => !isNew(each));
    if (again.some(([path]) => !this.#locked.has(path))) return false;
    const [inserted] = await together([
      write(sql, insertKeys, fresh, columns.length),
      write(
        sql,
        replaceKeys,
        again.map(([, row]) => row),
        columns.length,
      ),
    ]);
    return inserted.length === fresh.length;
  }
}
