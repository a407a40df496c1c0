import { A2AError } from "@parley/a2a/internal/model/index";
import { defaultPageBytes, type LogPage, type ReadOptions, type Scope } from "@parley/server/internal/store/index";
import {
  columns,
  columnsOf,
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
  type Schema,
} from "./schema.ts";
import type { Database } from "./database.ts";
import type { Row, Value } from "./driver.ts";
import { isOutage } from "./errors.ts";

/** Maximum number of new records per task in a shared statement. A reader that is further behind reads alone. */
const maxNew = 64;
/** Maximum bytes of records per task. */
const maxBytes = 65_536;
/** Maximum reads per statement. */
const maxReads = 256;
/** Maximum concurrent statements. */
const maxAtOnce = 2;

const wanted = columns("agent text, id text, owner text, after integer, most integer, bytes integer");

/**
 * Tasks with the newest records of their logs, in one snapshot. A read that is too far behind gets no records, and large records are
 * included only while they fit. PostgreSQL knows the size of a text without reading it.
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

/** `undefined` if there is no such task; `alone` if the task must be read separately. */
type Found = LogPage | "alone" | undefined;

interface Read {
  readonly scope: Scope;
  readonly taskId: string;
  readonly row: readonly Value[];
  readonly after: number;
  readonly limit: number;
  /** The deadline for retries. */
  readonly until: number;
  resolve(found: Found): void;
  reject(error: unknown): void;
}

/** Reads the new records of many tasks with one statement, because after a wake-up their readers all ask in the same tick. */
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
    // Runs after this tick, so that readers woken together share a statement.
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

  /** During an outage, rejects reads past their deadline. After other errors, runs each read separately, so that no read fails the others. */
  #failed(reads: readonly Read[], thrown: unknown): void {
    const isAway = thrown instanceof A2AError && isOutage(thrown.cause);
    if (!isAway) {
      for (const { resolve } of reads) resolve("alone");
      return;
    }
    const [oldest, ...others] = reads;
    oldest?.reject(thrown);
    // Reads past their deadline are not retried.
    const now = performance.now();
    const waiting = [...others, ...this.#waiting];
    this.#waiting = waiting.filter(({ until }) => until > now);
    for (const { until, reject } of waiting) if (until <= now) reject(thrown);
  }
}

/** Whether a page belongs to the requested task and owner. */
function isOf({ head: { task } }: LogPage, { scope, taskId }: Read): boolean {
  return task.taskId === taskId && (scope.owner === undefined || task.owner === scope.owner);
}

/** Whether a page is complete. */
function isWhole({ records, head }: LogPage, { after, limit }: Read): boolean {
  return head.seq <= after || records.length === limit || records.at(-1)?.seq === head.seq;
}

/** The pages by the index of their read. */
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
