import type { Queries, Row, Value } from "./driver.ts";
import { quoted } from "./pool.ts";

/** Bytes of an identifier (PostgreSQL §4.1.1). It cuts off longer ones, so that two schemas would be one. */
const maxBytes = 63;

/** Runs a statement. Its tables are written as `parley.tasks`, whatever the schema is called. */
export type Sql = (text: string, ...values: readonly Value[]) => Promise<readonly Row[]>;

/**
 * Statements as they are for a schema. Every name is qualified: a pooler may give each transaction another session, so a
 * `search_path` that was set would be that of somebody else.
 */
export class Schema {
  readonly name: string;
  readonly #prefix: string;
  /** The statements are constants, and those made of them are few. */
  readonly #texts = new Map<string, string>();

  /** @throws TypeError for a name that PostgreSQL would cut off, or does not take. */
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

/** A row with its columns, where a statement returns at most one. */
export async function one(rows: Promise<readonly Row[]>): Promise<Row | undefined> {
  return (await rows)[0];
}

/**
 * Waits for statements that were sent together. The first that failed is why the transaction failed: those after it fail because of
 * it.
 */
export async function together<T extends readonly unknown[]>(
  sent: readonly [...{ [I in keyof T]: Promise<T[I]> }],
): Promise<T> {
  const settled = await Promise.allSettled(sent as readonly Promise<unknown>[]);
  for (const each of settled) if (each.status === "rejected") throw each.reason;
  return settled.map((each) => (each.status === "fulfilled" ? each.value : undefined)) as unknown as T;
}

/** The columns of rows, as `unnest` takes them. There are `width` columns, also where there are no rows. */
export function columnsOf(rows: readonly (readonly Value[])[], width: number): Value[][] {
  const columns: Value[][] = Array.from({ length: width }, () => []);
  for (const row of rows) for (const [at, column] of columns.entries()) column.push(row[at] ?? null);
  return columns;
}
