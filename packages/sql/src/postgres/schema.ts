import { createHash } from "node:crypto";
import { encodeName, ownColumns as sharedColumns } from "../shared/rows.ts";
import type { Queries, Row, Value } from "./driver.ts";
import { quoted } from "./pool.ts";

/** Maximum bytes of an identifier (PostgreSQL §4.1.1). PostgreSQL truncates longer names, so two schemas could become one. */
const maxBytes = 63;

/** Runs a statement. The text names tables as `parley.tasks`, whatever the name of the schema. */
export type Sql = (text: string, ...values: readonly Value[]) => Promise<readonly Row[]>;

/**
 * Writes statements for a schema. Every name is qualified, because behind a pooler each transaction may get a different session, with the
 * `search_path` of another client.
 */
export class Schema {
  readonly name: string;
  readonly #prefix: string;
  /** Statements by text. They can be cached because statements are constants, and few statements are derived from them. */
  readonly #texts = new Map<string, string>();

  /** @throws TypeError for a name that PostgreSQL would truncate or reject. */
  constructor(name: string) {
    const bytes = Buffer.byteLength(name);
    if (bytes === 0 || bytes > maxBytes || name.includes("\0")) {
      throw new TypeError(`A schema name must have 1 to ${maxBytes} bytes and no NUL`);
    }
    this.name = name;
    this.#prefix = `${quoted(name)}.`;
  }

  /** A statement in this schema. */
  text(sql: string): string {
    let text = this.#texts.get(sql);
    if (text === undefined) {
      // The name of a sequence or of a table is passed to a function as text.
      text = sql.replaceAll(/(')?\bparley\./g, (_match, quote) =>
        quote === undefined ? this.#prefix : `'${this.#prefix.replaceAll("'", "''")}`,
      );
      this.#texts.set(sql, text);
    }
    return text;
  }

  /** Runs statements over a connection, a transaction or a database. */
  over(queries: Queries): Sql {
    return async (sql, ...values) => (await queries.query(this.text(sql), values)).rows;
  }
}

/** The row of a statement that returns at most one row. */
export async function one(rows: Promise<readonly Row[]>): Promise<Row | undefined> {
  return (await rows)[0];
}

/**
 * Waits for statements that were sent together. Rejects with the first failure, because that failure makes all later statements of the
 * transaction fail.
 */
export async function together<T extends readonly unknown[]>(
  sent: readonly [...{ [I in keyof T]: Promise<T[I]> }],
): Promise<T> {
  const settled = await Promise.allSettled(sent as readonly Promise<unknown>[]);
  for (const each of settled) if (each.status === "rejected") throw each.reason;
  return settled.map((each) => (each.status === "fulfilled" ? each.value : undefined)) as unknown as T;
}

/** Transposes rows to columns, for `unnest`. Returns `width` columns even without rows. */
export function columnsOf(rows: readonly (readonly Value[])[], width: number): Value[][] {
  const columns: Value[][] = Array.from({ length: width }, () => []);
  for (const row of rows) for (const [at, column] of columns.entries()) column.push(row[at] ?? null);
  return columns;
}

export * from "../shared/rows.ts";

/** Names of at most this many characters are indexed unchanged. An index entry has at most 2,704 bytes. */
const longestName = 500;

/**
 * The indexed form of a name from a client. A long name is indexed by its beginning and its hash. No other name can equal this form,
 * because names are stored without control characters.
 */
export function indexName(name: string): string {
  const encoded = encodeName(name);
  if (encoded.length <= longestName) return encoded;
  return `${encoded.slice(0, 50).replace(/[\uD800-\uDBFF]$/, "")}\u0001${createHash("sha256").update(encoded).digest("hex")}`;
}

/** SQL of a row's original name. The column `name` has the indexed form. */
export const wholeName = (table: string): string => `coalesce(${table}.long_name, ${table}.name)`;

/** The key of a feature `f`. */
export const wholeKey = "coalesce(f.long_key, f.key)";
/** The id of a task `t`. */
export const taskId = "coalesce(t.long_id, t.id)";
/** The columns of `onceRecord`. */
export const onceColumns: string = `k.hash, k.seq, ${taskId}, k.answer`;
/** The name of an agent `a`, and of an owner `o`. */
export const agentName: string = wholeName("a");
export const ownerName: string = wholeName("o");

/** Columns of the task and of its context. */
export const ownColumns: string = sharedColumns.replace("c.name", wholeName("c")).replace("t.id", taskId);

/** Like `ownColumns`, with the names of agent and owner, for a caller that does not know them. */
export const taskColumns: string = `${ownColumns}, ${agentName}, ${ownerName}`;

export const ownTables: string = "parley.tasks t JOIN parley.contexts c ON c.id = t.context";
export const taskTables: string = `${ownTables} JOIN parley.scopes a ON a.id = t.agent JOIN parley.scopes o ON o.id = t.owner`;

/** The lease end of runs without a lease, so that they sort before all others. */
export const neverHeld: number = -Number.MAX_SAFE_INTEGER;

/** The columns of `recordRow`. */
export const recordColumns = "seq, kind, state, time, actor, turn, attempt, extra, json";

/** A column that is written, and its type. */
export type Column = readonly [name: string, type: string];

/** Parses columns as in a table definition: `task bigint, seq integer`. */
export function columns(list: string): readonly Column[] {
  return list.split(", ").map((column): Column => {
    const [name = "", type = ""] = column.split(" ");
    return [name, type];
  });
}

/** SQL of rows that are passed as one array per column: `unnest($1::bigint[], …) AS v (task, …)`. */
export function rowsOf(columns: readonly Column[], first = 1): string {
  const arrays = columns.map(([, type], at) => `$${at + first}::${type}[]`);
  return `unnest(${arrays.join(", ")}) AS v (${columns.map(([name]) => name).join(", ")})`;
}

/** A statement that inserts rows. `rest` is the end of the statement, such as `ON CONFLICT`; `where` is a condition for the rows `v`. */
export function insertInto(
  table: string,
  columns: readonly Column[],
  order: string,
  rest = "",
  where = "true",
): string {
  const names = columns.map(([name]) => name).join(", ");
  return `INSERT INTO parley.${table} (${names}) SELECT ${names} FROM ${rowsOf(columns)} WHERE ${where} ORDER BY ${order} ${rest}`;
}

/** The indexed form of a name, and the whole name if it is long. */
export function bothNames(name: string): readonly [short: string, long: string | null] {
  const [short, long] = [indexName(name), encodeName(name)];
  return [short, short === long ? null : long];
}

/** Runs a statement with its rows. Does nothing without rows. */
export async function write(
  sql: Sql,
  statement: string,
  rows: readonly (readonly Value[])[],
  width: number,
): Promise<readonly Row[]> {
  return rows.length === 0 ? [] : sql(statement, ...columnsOf(rows, width));
}
