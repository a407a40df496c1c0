import { A2AError } from "@parley/a2a/internal/model/index";
import { defaultPageBytes, type LogPage, type ReadOptions, type Scope } from "@parley/server/internal/store/index";
import {
  columns,
  indexName,
  int,
  maxSeq,
  ownTables,
  recordColumns,
  recordRow,
  rowsOf,
  taskColumns,
  taskRow,
  taskWidth,
} from "./rows.ts";
import { columnsOf, type Schema } from "./schema.ts";
import type { Database } from "./database.ts";
import type { Row, Value } from "./driver.ts";
import { isOutage } from "./errors.ts";

/** New records of a task up to which its reader shares a statement. One that is far behind reads by itself. */
const maxNew = 64;
/** Bytes of records of each of them. */
const maxBytes = 65_536;
/** Reads of one statement. */
const maxReads = 256;
/** Statements at one time. */
const maxAtOnce = 2;

const wanted = columns("agent text, id text, owner text, after integer, most integer, bytes integer");

/**
 * Tasks, and the newest records of their logs: at one moment, since it is one statement. Of a task with too many of them there is the head
 * alone, and of large ones there are as many as fit. Sizes are known without reading what is large.
 */
const selectNew = `SELECT v.at, ${taskColumns}, r.*
  FROM (SELECT v.*, row_number() OVER () AS at FROM ${rowsOf(wanted)}) v
    JOIN parley.scopes a ON a.parent = 0 AND a.name = v.agent
    JOIN (${ownTables}) ON t.agent = a.id AND t.id = v.id
    JOIN parley.scopes o ON o.id = t.owner AND (v.owner IS NULL OR o.name = v.owner)
    LEFT JOIN LATERAL (
      SELECT ${recordColumns} FROM (
        SELECT ${recordColumns}, sum(octet_length(json) + coalesce(octet_length(extra), 0)) OVER (ORDER BY seq) AS size
        FROM parley.log WHERE task = t.number AND seq > greatest(v.after, t.first_seq - 1) ORDER BY seq LIMIT v.most
      ) l WHERE l.size <= v.bytes
    ) r ON t.seq - v.after <= ${maxNew}
  ORDER BY v.at, r.seq`;

/** The page of a log. `undefined`: there is no such task. `alone`: it has to be read by itself. */
type Found = LogPage | "alone" | undefined;

interface Read {
  readonly scope: Scope;
  readonly taskId: string;
  readonly row: readonly Value[];
  readonly after: number;
  readonly limit: number;
  /** Until when it waits for a database that is away. */
  readonly until: number;
  resolve(found: Found): void;
  reject(error: unknown): void;
}

/**
 * Reads what is new in the logs of many tasks with one statement. A wake-up names many tasks, and the reader of each asks in the same turn of
 * the event loop.
 */
export class LogReads {
  readonly #database: Pick<Database, "query" | "deadline">;
  readonly #text: string;
  #waiting: Read[] = [];
  #reading = 0;
  #isDue = false;

  constructor(database: Pick<Database, "query" | "deadline">, schema: Schema) {
    this.#database = database;
    this.#text = schema.text(selectNew);
  }

  read(scope: Scope, taskId: string, options: ReadOptions): Promise<Found> {
    const { after, limit, bytes = defaultPageBytes, kinds } = options;
    if (kinds !== undefined || after < 0 || after > maxSeq || limit < 1) return Promise.resolve("alone");
    const owner = scope.owner === undefined ? null : indexName(scope.owner);
    const row = [
      indexName(scope.agent),
      indexName(taskId),
      owner,
      after,
      Math.min(limit, maxNew),
      Math.min(bytes, maxBytes),
    ];
    const until = this.#database.deadline();
    return new Promise((resolve, reject) => {
      this.#waiting.push({ scope, taskId, row, after, limit, until, resolve, reject });
      this.#schedule();
    });
  }

  #schedule(): void {
    if (this.#isDue || this.#reading === maxAtOnce || this.#waiting.length === 0) return;
    this.#isDue = true;
    // After this turn of the event loop: those who were told together read together.
    setImmediate(() => {
      this.#isDue = false;
      void this.#read();
    });
  }

  async #read(): Promise<void> {
    const reads = this.#waiting.splice(0, maxReads);
    this.#reading += 1;
    this.#schedule();
    try {
      const values = columnsOf(
        reads.map(({ row }) => row),
        wanted.length,
      );
      const { rows } = await this.#database.query(this.#text, values, {
        until: reads[0]?.until ?? this.#database.deadline(),
      });
      const found = pagesOf(rows);
      for (const [at, read] of reads.entries()) {
        const page = found.get(at + 1);
        read.resolve(page === undefined || (isOf(page, read) && isWhole(page, read)) ? page : "alone");
      }
    } catch (thrown) {
      this.#failed(reads, thrown);
    }
    this.#reading -= 1;
    this.#schedule();
  }

  /** Where the database is away, those fail that have waited for their time. Else each reads by itself, so that none fails because of another. */
  #failed(reads: readonly Read[], thrown: unknown): void {
    const isAway = thrown instanceof A2AError && isOutage(thrown.cause);
    if (!isAway) {
      for (const { resolve } of reads) resolve("alone");
      return;
    }
    const [oldest, ...others] = reads;
    oldest?.reject(thrown);
    // Those that have waited as long do not try it again, one statement after the other.
    const now = performance.now();
    const waiting = [...others, ...this.#waiting];
    this.#waiting = waiting.filter(({ until }) => until > now);
    for (const { until, reject } of waiting) if (until <= now) reject(thrown);
  }
}

/** Whether a page is that of the task and the owner that were asked for, whatever the order of rows in the statement. */
function isOf({ head: { task } }: LogPage, { scope, taskId }: Read): boolean {
  return task.taskId === taskId && (scope.owner === undefined || task.owner === scope.owner);
}

/** Whether a page has all that was asked for. */
function isWhole({ records, head }: LogPage, { after, limit }: Read): boolean {
  return head.seq <= after || records.length === limit || records.at(-1)?.seq === head.seq;
}

/** The pages, by the place of their read. */
function pagesOf(rows: readonly Row[]): ReadonlyMap<number, LogPage> {
  const pages = new Map<number, LogPage & { readonly records: ReturnType<typeof recordRow>[] }>();
  for (const row of rows) {
    const at = int(row, 0);
    let page = pages.get(at);
    if (page === undefined) pages.set(at, (page = { records: [], head: taskRow(row.slice(1, 1 + taskWidth)).head }));
    const record = row.slice(1 + taskWidth);
    if (record[0] !== null) page.records.push(recordRow(record));
  }
  return pages;
}
