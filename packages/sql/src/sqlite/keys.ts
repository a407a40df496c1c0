import type { OnceEffect, OnceRecord, Owner, TaskHead } from "@parley/server/internal/store/index";
import type { Driver, Row } from "./driver.ts";
import { decodeName, encodeJson, encodeName, insertInto, int, ManyRows, optional, text, type TaskRow } from "./rows.ts";
import type { ScopeIds } from "./scopes.ts";

// Idempotency keys.

const recordColumns = "k.hash, k.seq, t.id, k.answer";
const tables = "keys k LEFT JOIN tasks t ON t.number = k.task";
const where = "k.name = ? AND (k.until IS NULL OR k.until > ?)";

/** The record of a key that has not expired. */
export function readOnce(
  driver: Driver,
  scopes: ScopeIds,
  owner: Owner,
  key: string,
  now: number,
): OnceRecord | undefined {
  const agent = scopes.find(owner.agent);
  if (agent === undefined) return undefined;
  // The owner is looked up each time: another process may have deleted it.
  const sql = `SELECT ${recordColumns} FROM scopes o CROSS JOIN ${tables} WHERE o.parent = ? AND o.name = ? AND k.owner = o.id AND ${where}`;
  return recordOf(key, driver.prepare(sql).get(agent, encodeName(owner.owner), encodeName(key), Math.floor(now)));
}

function findKey(driver: Driver, owner: number, key: string, now: number): OnceRecord | undefined {
  const sql = `SELECT ${recordColumns} FROM ${tables} WHERE k.owner = ? AND ${where}`;
  return recordOf(key, driver.prepare(sql).get(owner, encodeName(key), Math.floor(now)));
}

function recordOf(key: string, row: Row | undefined): OnceRecord | undefined {
  if (row === undefined) return undefined;
  const taskId = optional(row, 2);
  const answer = optional(row, 3);
  return {
    key,
    hash: decodeName(text(row, 0)),
    seq: int(row, 1),
    ...(typeof taskId === "string" && { taskId: decodeName(taskId) }),
    ...(typeof answer === "string" && { answer }),
  };
}

interface Place {
  readonly owner: number;
  /** The task or the context that it is deleted with: one of the two. */
  readonly task: number | null;
  readonly context: number | null;
}

/** A new key replaces one that has expired. */
const insertKeys = insertInto(
  "keys",
  ["owner", "name", "hash", "task", "context", "seq", "until", "answer"],
  `ON CONFLICT (owner, name) DO UPDATE SET hash = excluded.hash, task = excluded.task, context = excluded.context,
     seq = excluded.seq, until = excluded.until, answer = excluded.answer`,
);

/** The keys of a transaction: it reads those of the table, and adds new ones when it ends. */
export class Keys {
  readonly #driver: Driver;
  readonly #rows: ManyRows;
  readonly #added = new Map<string, { readonly record: OnceRecord; readonly until: number }>();

  constructor(driver: Driver) {
    this.#driver = driver;
    this.#rows = new ManyRows(driver, insertKeys);
  }

  /** Whether the transaction adds this key. */
  has(owner: number, key: string): boolean {
    return this.#added.has(`${owner}/${key}`);
  }

  find(owner: number, key: string, now: number): OnceRecord | undefined {
    const added = this.#added.get(`${owner}/${key}`);
    if (added === undefined) return findKey(this.#driver, owner, key, now);
    return added.until > now ? added.record : undefined;
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
    const record = { key, hash, ...(answer !== undefined && { answer }), ...at };
    this.#added.set(`${owner}/${key}`, { record, until: until ?? Infinity });
    const json = answer === undefined ? null : encodeJson(answer);
    this.#rows.add(owner, encodeName(key), encodeName(hash), task, context, at.seq, until ?? null, json);
  }

  write(): void {
    this.#rows.write();
  }
}
