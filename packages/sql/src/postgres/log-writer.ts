import type { ContextMessageEffect, ReadRecord } from "@parley/server/internal/store/index";
import type { Row, Value } from "./driver.ts";
import { encodeJson, insertInto, recordValueColumns, recordValues, write, type Column } from "./rows.ts";
import { together, type Sql } from "./schema.ts";

const texts: ReadonlySet<string> = new Set(["extra", "json"]);
const logColumns: readonly Column[] = [
  ["task", "bigint"],
  ["seq", "integer"],
  ["context", "bigint"],
  ["place", "bigint"],
  ["base", "text"],
  ...recordValueColumns.map((name): Column => [name, texts.has(name) ? "text" : typeOf(name)]),
];
const insertRecords = insertInto("log", logColumns, "task, seq");

const replyColumns: readonly Column[] = [
  ["context", "bigint"],
  ["place", "bigint"],
  ["time", "bigint"],
  ["json", "text"],
];
const insertReplies = insertInto("replies", replyColumns, "context, place");

/** About the most characters of one statement: the message of a statement has less than 1 GiB. */
const maxText = 16 << 20;

function typeOf(name: string): Column[1] {
  if (name === "time") return "bigint";
  return name === "turn" || name === "attempt" ? "integer" : "smallint";
}

/** Rows for one table, in statements of a bounded size. */
class Rows {
  readonly #statement: string;
  readonly #width: number;
  readonly #groups: Value[][][] = [];
  #room = 0;

  constructor(statement: string, width: number) {
    this.#statement = statement;
    this.#width = width;
  }

  add(row: readonly Value[], length: number): void {
    if (length > this.#room) {
      this.#groups.push([]);
      this.#room = maxText;
    }
    this.#groups.at(-1)?.push([...row]);
    this.#room -= length;
  }

  async write(sql: Sql): Promise<void> {
    await together(this.#groups.map((rows): Promise<readonly Row[]> => write(sql, this.#statement, rows, this.#width)));
  }
}

/** Collects the records of a transaction. */
export class LogWriter {
  readonly #rows = new Rows(insertRecords, logColumns.length);

  /** `place`: of a record of the history. `base`: of the first record of a task. */
  add(
    task: number,
    seq: number,
    place: { readonly context: number; readonly place: number } | undefined,
    base: string | undefined,
    read: ReadRecord,
  ): void {
    const at = [place?.context ?? null, place?.place ?? null];
    const first = base === undefined ? null : encodeJson(base);
    this.#rows.add([task, seq, ...at, first, ...recordValues(read)], read.bytes + (base?.length ?? 0));
  }

  write(sql: Sql): Promise<void> {
    return this.#rows.write(sql);
  }
}

/** Collects the direct replies of a transaction. */
export class ReplyWriter {
  readonly #rows = new Rows(insertReplies, replyColumns.length);

  add(context: number, place: number, { time, json }: ContextMessageEffect): void {
    this.#rows.add([context, place, time, encodeJson(json)], json.length);
  }

  write(sql: Sql): Promise<void> {
    return this.#rows.write(sql);
  }
}
