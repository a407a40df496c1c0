import { createHash } from "node:crypto";
import type { RateTaken, RateUse } from "@parley/server/internal/store/index";
import type { Database } from "./database.ts";
import { int, text } from "./rows.ts";
import type { Schema } from "./schema.ts";

/*
 * Budgets that nodes share. A row has the time at which all of a budget is back (the generic cell rate algorithm), on the clock of the
 * database. Where that is past, the row says nothing, and is deleted. The table is not logged: after a crash of the server, and on the
 * other side of a failover, all budgets are whole.
 */

/** Milliseconds between two looks of a node for rows that say nothing, and how many it deletes in a statement. */
const tidyEvery = 60_000;
const maxTidied = 5_000;

/** Milliseconds that a server waits for an answer: it counts by itself then. */
const patience = 1_000;

const now = "(extract(epoch FROM clock_timestamp()) * 1000)::float8";

/** What is left of what is asked for, after `base`. A thousandth of a request is an error of rounding. */
const taken = (row: string, base: string): string =>
  `greatest(0, least(${row}.wanted, floor((${row}.at + ${row}.per - (${base})) / ${row}.pace + 0.001)))::int`;
/** When all is back. A debt is at most one budget, whatever clock was set. */
const back = (row: string, base: string): string =>
  `least((${base}) + ${taken(row, base)} * ${row}.pace, ${row}.at + 2 * ${row}.per)`;

const ofNew = "n.at + n.used * n.pace";
const ofOld = "greatest(least(r.back_at, excluded.at + 2 * excluded.per), excluded.at) + excluded.used * excluded.pace";

/** The rows are locked in the order of their keys, so that nodes never deadlock. */
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

  /** One statement. It is not repeated for long where the database is away: who asks does not wait for it. */
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

/** A name of any length, which may tell who somebody is, as the first 128 bits of its hash. */
function nameOf(key: string): string {
  const hex = createHash("sha256").update(key).digest("hex");
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20, 32)].join("-");
}
