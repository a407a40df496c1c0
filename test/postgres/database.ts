import { randomUUID } from "node:crypto";
import pg from "pg";
import { afterAll, beforeAll, inject } from "vitest";

/** A separate database. */
export interface TestDatabase {
  /** Its URL. */
  readonly url: string;
  /** Ends every connection to it, as an operator could. */
  disconnectAll(): Promise<void>;
  /** Runs a statement on a separate connection. */
  run(text: string, values?: unknown[]): Promise<pg.QueryResult>;
  drop(): Promise<void>;
}

/** Creates a database on a server: that of the run, or the one whose URL is passed. */
async function createDatabase(server: string = inject("postgres")): Promise<TestDatabase> {
  const name = `parley_test_${randomUUID().replaceAll("-", "")}`;
  await once(server, `CREATE DATABASE ${name}`);
  const url = new URL(server);
  url.pathname = `/${name}`;
  return {
    url: url.href,
    async disconnectAll() {
      await once(server, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = $1", [name]);
    },
    run: (text, values) => once(url.href, text, values),
    async drop() {
      await once(server, `DROP DATABASE IF EXISTS ${name} WITH (FORCE)`);
    },
  };
}

/** A database for the tests of a file, which is dropped after them. It is there when the first test begins. */
export function useDatabase(): () => TestDatabase {
  let database: TestDatabase | undefined;
  beforeAll(async () => {
    database = await createDatabase();
  });
  afterAll(async () => {
    await database?.drop();
  });
  return () => {
    if (database === undefined) throw new Error("The database is created before the first test");
    return database;
  };
}

async function once(url: string, text: string, values?: unknown[]): Promise<pg.QueryResult> {
  const client = new pg.Client({ connectionString: url });
  // What ends all connections ends this one too.
  client.on("error", () => undefined);
  await client.connect();
  try {
    return await client.query(text, values);
  } finally {
    await client.end();
  }
}
