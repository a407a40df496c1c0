import { unavailable, type StoreNode } from "@parley/server/internal/store/index";
import type { Database } from "./database.ts";
import type { Connection, PostgresDriver, Queries, Result, Value } from "./driver.ts";
import { quickSilence } from "./limits.ts";
import { decodeName, encodeName, int, text } from "./rows.ts";
import type { Schema, Sql } from "./schema.ts";

/*
 * The table is not logged: a heartbeat writes nothing that has to reach the disk. After a crash of the server, and on the other side of a
 * failover, it is empty, and every process that lives is back in it with its next heartbeat.
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

/** Of so many connections, heartbeats may have one. With fewer, the other statements need them more. */
const minForOwn = 3;

/**
 * One statement for each process and heartbeat. A process whose heartbeats wait behind its own work would be taken for dead because it has
 * much to do. So they go over a connection on which nothing else waits: the one that listens for wake-ups, or one of their own. Where
 * that does not answer in time, they go over the pool at once.
 */
export class Heartbeats {
  readonly #database: Database;
  readonly #schema: Schema;
  readonly #listening: () => Queries | undefined;
  readonly #own: OwnConnection | undefined;
  /** The way through the pool. */
  readonly #pool: Queries;
  /** Heartbeats without an answer, by their way. Nothing more is sent there until it has come. */
  readonly #open = new Map<Queries, Promise<readonly StoreNode[]>>();

  /** `listening`: the connection that listens now. */
  constructor(database: Database, schema: Schema, listening: () => Queries | undefined) {
    this.#database = database;
    this.#schema = schema;
    this.#listening = listening;
    const { driver } = database;
    if ((driver.connections ?? 0) >= minForOwn) this.#own = new OwnConnection(driver);
    // It is not repeated while the database is away: the next heartbeat tries again.
    this.#pool = {
      query: (statement, values) => database.query(statement, values, { until: 0, silence: quickSilence }),
    };
  }

  /** As `StoreNodes.beat`. */
  async beat(node: string, within?: number): Promise<readonly StoreNode[]> {
    const listening = this.#listening();
    if (listening !== undefined) this.#own?.leave();
    const way = listening ?? this.#own;
    if (way !== undefined && !this.#open.has(way)) {
      try {
        return await this.#send(way, node, within);
      } catch {
        // It may be lost without a word. One that listens is looked after by whoever listens.
        if (way === this.#own) this.#own?.leave(true);
      }
    }
    if (within === undefined) return beatOver(this.#schema.over(this.#database), node);
    return this.#send(this.#pool, node, within);
  }

  /** Rejects where the answer is not there in time. */
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

  /** Gives its connection back. */
  close(): void {
    this.#own?.leave();
  }
}

/** A connection that is lent, and how it is given back. */
interface Lent {
  readonly connection: Promise<Connection>;
  readonly end: (isLost: boolean) => void;
}

/** A connection that is kept from one statement to the next. */
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

  /** Gives the connection back, or closes it where it is lost. The next statement gets another one. */
  leave(isLost = false): void {
    this.#lent?.end(isLost);
    this.#lent = undefined;
  }
}

function lend(driver: PostgresDriver): Lent {
  let end: Lent["end"] = () => {};
  const over = new Promise<void>((resolve, reject) => {
    end = (isLost) => (isLost ? reject(new Error("A heartbeat was not answered")) : resolve());
  });
  const connection = new Promise<Connection>((resolve, reject) => {
    const body = (lent: Connection): Promise<void> => {
      resolve(lent);
      return over;
    };
    driver.hold(body).catch(reject);
  });
  // The statement that waits for it says so.
  for (const each of [over, connection]) each.catch(() => {});
  return { connection, end };
}
