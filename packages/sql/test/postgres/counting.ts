import pg from "pg";
import type { Connection, PostgresDriver } from "../../src/postgres/driver.ts";
import { poolDriver } from "../../src/postgres/pool.ts";

/** A driver that records its statements. */
export interface CountingDriver extends PostgresDriver {
  /** Returns the statements since the last call, except for those that begin and end transactions. */
  taken(): readonly string[];
  /** The last statement before the commit of each transaction since the last call. */
  last(): readonly string[];
  /** The number of exchanges with the server so far. Statements that are sent together count as one. */
  readonly exchanges: number;
}

export interface CountingOptions {
  /** Simulates a pooler in transaction mode: each transaction runs on a different connection, without session state. */
  readonly pooler?: boolean;
}

export function countingDriver(url: string, { pooler = false }: CountingOptions = {}): CountingDriver {
  const pools = Array.from(
    { length: pooler ? 3 : 1 },
    () => new pg.Pool({ connectionString: url, max: 4, pipeline: true }),
  );
  const drivers = pools.map((pool) => poolDriver(pool, { silence: 20_000, owned: true }));
  let sent: string[] = [];
  let last: string[] = [];
  let waiting = 0;
  let exchanges = 0;
  let turn = 0;

  function counted(connection: Connection): Connection {
    return {
      backend: connection.backend,
      async query(text, values, silence) {
        if (!/^(?:BEGIN|COMMIT|ROLLBACK)/.test(text)) sent.push(text);
        const before = sent.at(-1);
        if (text === "COMMIT" && before !== undefined) last.push(before);
        if (waiting === 0) exchanges += 1;
        waiting += 1;
        try {
          return await connection.query(text, values, silence);
        } finally {
          waiting -= 1;
        }
      },
    };
  }

  const driver: CountingDriver = {
    async hold(body, silence) {
      turn += 1;
      const next = drivers[turn % drivers.length] as PostgresDriver;
      return next.hold(async (connection) => {
        if (pooler) {
          await connection.query("DISCARD ALL");
          await connection.query("SET search_path = pg_temp");
        }
        return body(counted(connection));
      }, silence);
    },
    query: (text, values) => driver.hold((connection) => connection.query(text, values)),
    async close() {
      await Promise.all(drivers.map((each) => each.close()));
    },
    taken() {
      const all = sent;
      [sent, last] = [[], []];
      return all;
    },
    last: () => last,
    get exchanges() {
      return exchanges;
    },
  };
  return driver;
}
