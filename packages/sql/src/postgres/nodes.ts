import { createHash } from "node:crypto";
import { unavailable, type RateTaken, type RateUse, type StoreNode } from "@parley/server/internal/store/index";
import type { Database } from "./database.ts";
import type { Connection, PostgresDriver, Queries, Result, Value } from "./driver.ts";
import { quickSilence } from "./patience.ts";
import { decodeName, encodeName, int, text, type Schema, type Sql } from "./schema.ts";

/*
 * The table is unlogged: heartbeats need not reach the disk. After a crash or a failover it is empty, and the next heartbeat of each
 * living process adds its row again.
 */

const beatNode = `WITH own AS (
    INSERT INTO parley.nodes (name, beats, at) VALUES ($1, 1, clock_timestamp())
    ON CONFLICT (name) DO UPDATE SET beats = parley.nodes.beats + 1, at = clock_timestamp() RETURNING name, beats, at
  ), every AS (
    SELECT name, beats, at FROM own UNION ALL SELECT name, beats, at FROM parley.nodes WHERE name <> $1
  )
  SELECT name, beats, floor(extract(epoch FROM clock_timestamp() - at) * 1000)::bigint FROM every`;

async function beatOver(sql: Sql, node: string): Promise<readonly StoreNode[]> {
  const rows = await sql(beatNode, encodeName(node));
  return rows.map((row) => ({ name: decodeName(text(row, 0)), beats: int(row, 1), silent: int(row, 2) }));
}

export async function forget(sql: Sql, nodes: readonly string[]): Promise<void> {
  await sql("DELETE FROM parley.nodes WHERE name = ANY($1::text[])", nodes.map(encodeName));
}

/** With at least this many connections, heartbeats get their own connection. */
const minForOwn = 3;

/**
 * One statement per process and heartbeat. A process whose heartbeats queue behind its own work would seem dead, so they use the
 * connection that listens for wake-ups or a separate one, and fall back to the pool if it does not answer in time.
 */
export class Heartbeats {
  readonly #database: Database;
  readonly #schema: Schema;
  readonly #listening: () => Queries | undefined;
  readonly #own: OwnConnection | undefined;
  /** Sends heartbeats through the pool. */
  readonly #pool: Queries;
  /** Unanswered heartbeats by connection. A connection gets no further heartbeat until it answers. */
  readonly #open = new Map<Queries, Promise<readonly StoreNode[]>>();

  /** `listening` returns the connection that listens now. */
  constructor(database: Database, schema: Schema, listening: () => Queries | undefined) {
    this.#database = database;
    this.#schema = schema;
    this.#listening = listening;
    const { driver } = database;
    if ((driver.connections ?? 0) >= minForOwn) this.#own = new OwnConnection(driver);
    // Not retried, because the next heartbeat is the retry.
    this.#pool = {
      query: (statement, values) => database.query(statement, values, { until: 0, silence: quickSilence }),
    };
  }

  /** See `StoreNodes.beat`. */
  async beat(node: string, within?: number): Promise<readonly StoreNode[]> {
    const listening = this.#listening();
    if (listening !== undefined) this.#own?.leave();
    const way = listening ?? this.#own;
    if (way !== undefined && !this.#open.has(way)) {
      try {
        return await this.#send(way, node, within);
      } catch {
        // The connection may be lost silently. `NotifyWakeup` monitors the listening connection.
        if (way === this.#own) this.#own?.leave(true);
      }
    }
    if (within === undefined) return beatOver(this.#schema.over(this.#database), node);
    return this.#send(this.#pool, node, within);
  }

  /** Rejects if the answer is late. */
  async #send(way: Queries, node: string, within: number | undefined): Promise<readonly StoreNode[]> {
    let answer = this.#open.get(way);
    if (answer === undefined) {
      this.#open.set(way, (answer = beatOver(this.#schema.over(way), node)));
      const forget = (): void => void this.#open.delete(way);
      answer.then(forget, forget);
    }
    if (within === undefined) return answer;
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_resolve, reject) => {
      timer = setTimeout(() => reject(unavailable("The database did not answer a heartbeat in time")), within);
    });
    return Promise.race([answer, late]).finally(() => clearTimeout(timer));
  }

  /** Returns the connection of the heartbeats to the pool. */
  close(): void {
    this.#own?.leave();
  }
}

/** A lent connection, and how to return it. */
interface Lent {
  readonly connection: Promise<Connection>;
  readonly end: (isLost: boolean) => void;
}

/** A connection that is kept between statements. */
class OwnConnection implements Queries {
  readonly #driver: PostgresDriver;
  #lent: Lent | undefined;

  constructor(driver: PostgresDriver) {
    this.#driver = driver;
  }

  async query(statement: string, values?: readonly Value[]): Promise<Result> {
    this.#lent ??= lend(this.#driver);
    return (await this.#lent.connection).query(statement, values);
  }

  /** Returns the connection, or closes a lost connection. The next statement takes another connection. */
  leave(isLost = false): void {
    this.#lent?.end(isLost);
    this.#lent = undefined;
  }
}

function lend(driver: PostgresDriver): Lent {
  let end: Lent["end"] = () => {};
  const over = new Promise<void>((resolve, reject) => {
    end = (isLost) => (isLost ? reject(new Error("Heartbeat timed out")) : resolve());
  });
  const connection = new Promise<Connection>((resolve, reject) => {
    const body = (lent: Connection): Promise<void> => {
      resolve(lent);
      return over;
    };
    driver.hold(body).catch(reject);
  });
  // The waiting statement reports the error.
  for (const each of [over, connection]) each.catch(() => {});
  return { connection, end };
}

/*
 * Rate budgets shared by all nodes. A row has the time at which the whole budget is available again (generic cell rate algorithm), by
 * the clock of the database. Once that time has passed, the row is deleted. The table is unlogged: after a crash or a failover all budgets are
 * full.
 */

/** Milliseconds between two cleanups by a node, and the maximum number of rows that a statement deletes. */
const tidyEvery = 60_000;
const maxTidied = 5_000;

/** Milliseconds after which a server falls back to counting locally. */
const patience = 1_000;

const now = "(extract(epoch FROM clock_timestamp()) * 1000)::float8";

/** The part of the wanted budget that is available after `base`. The thousandth absorbs rounding errors. */
const taken = (row: string, base: string): string =>
  `greatest(0, least(${row}.wanted, floor((${row}.at + ${row}.per - (${base})) / ${row}.pace + 0.001)))::int`;
/** When the whole budget is available again. A debt is at most one budget, even if a clock was set. */
const back = (row: string, base: string): string =>
  `least((${base}) + ${taken(row, base)} * ${row}.pace, ${row}.at + 2 * ${row}.per)`;

const ofNew = "n.at + n.used * n.pace";
const ofOld = "greatest(least(r.back_at, excluded.at + 2 * excluded.per), excluded.at) + excluded.used * excluded.pace";

/** Locks rows in the order of their keys, so that nodes never deadlock. */
const use = `INSERT INTO parley.rates AS r (key, at, per, pace, used, wanted, taken, back_at)
  SELECT n.key, n.at, n.per, n.pace, n.used, n.wanted, ${taken("n", ofNew)}, ${back("n", ofNew)}
  FROM (SELECT i.key, i.per, i.pace, i.used, i.wanted, c.at
    FROM unnest($1::uuid[], $2::float8[], $3::float8[], $4::int[], $5::int[]) AS i (key, per, pace, used, wanted),
      (SELECT ${now} AS at) c
    ORDER BY i.key) n
  ON CONFLICT (key) DO UPDATE SET at = excluded.at, per = excluded.per, pace = excluded.pace, used = excluded.used,
    wanted = excluded.wanted, taken = ${taken("excluded", ofOld)}, back_at = ${back("excluded", ofOld)}
  RETURNING key::text, taken, greatest(0, back_at - at)`;

const tidy = `DELETE FROM parley.rates WHERE key IN (
    SELECT key FROM parley.rates WHERE back_at < ${now} LIMIT ${maxTidied} FOR UPDATE SKIP LOCKED)
  RETURNING 1`;

/** The budgets in a database. */
export class Rates {
  readonly #database: Database;
  readonly #schema: Schema;
  #tidied = performance.now();

  constructor(database: Database, schema: Schema) {
    this.#database = database;
    this.#schema = schema;
  }

  /** Whether it is time to call `tidy`. */
  get isUntidy(): boolean {
    return performance.now() - this.#tidied > tidyEvery;
  }

  /** One statement, retried only briefly, because callers do not wait for an outage. */
  async take(uses: readonly RateUse[]): Promise<readonly RateTaken[]> {
    if (uses.length === 0) return [];
    const keys = uses.map(({ key }) => nameOf(key));
    const { rows } = await this.#database.query(
      this.#schema.text(use),
      [
        keys,
        uses.map(({ per }) => per),
        uses.map(({ per, requests }) => per / requests),
        uses.map(({ used }) => Math.min(used, maxUsed)),
        uses.map(({ wanted }) => Math.min(wanted, maxUsed)),
      ],
      { until: performance.now() + patience },
    );
    const answers = new Map(rows.map((row) => [text(row, 0), { taken: int(row, 1), back: Number(row[2]) }]));
    return keys.map((key) => answers.get(key) ?? { taken: 0, back: 0 });
  }

  async tidy(): Promise<void> {
    this.#tidied = performance.now();
    while ((await this.#database.query(this.#schema.text(tidy))).rows.length === maxTidied);
  }
}

/** The largest `integer` of PostgreSQL. */
const maxUsed = 2 ** 31 - 1;

/** A name may identify a person, so only the first 128 bits of its hash are stored. */
function nameOf(key: string): string {
  const hex = createHash("sha256").update(key).digest("hex");
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20, 32)].join("-");
}
