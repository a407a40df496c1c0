import { A2AError, type Store } from "@parley/server";
import pg from "pg";
import { generate } from "selfsigned";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { inspect } from "node:util";
import { password, startPostgres, type PostgresServer } from "../../../../test/postgres/server.ts";
import { connect, type PostgresConnectOptions } from "../../src/postgres/connect.ts";
import type { StoreCondition } from "@parley/server/store";
import { postgresStore } from "@parley/sql/postgres";
import type { Database } from "../../src/postgres/database.ts";
import { probed } from "./serving.ts";
import { recorder } from "./logs.ts";

/** A separate server, which the tests stop and change. */
let server: PostgresServer;
let certificate: string;
const opened: { close(): Promise<unknown> }[] = [];
const write = { mode: "write" } as const;

beforeAll(async () => {
  const made = await generate([{ name: "commonName", value: "localhost" }], {
    extensions: [{ name: "subjectAltName", altNames: [{ type: 2, value: "localhost" }] }],
  });
  server = await startPostgres({ tls: { cert: made.cert, key: made.private } });
  certificate = join(server.folder, "ca.pem");
  writeFileSync(certificate, made.cert);
});
afterEach(async () => {
  for (const db of opened.splice(0)) await db.close();
});
afterAll(() => server.remove());

async function open(options: Partial<PostgresConnectOptions> = {}): Promise<Database> {
  const db = await connect({ database: server.url, ...options });
  opened.push(db);
  return db;
}

/** The result of a store's check, once its pool has no connection to the previous server. */
async function stateOf(store: Store): Promise<StoreCondition | undefined> {
  let found: StoreCondition | undefined;
  await expect.poll(async () => (found = await store.check?.().catch(() => undefined))).toBeDefined();
  return found;
}

/** The message of an `Unavailable` error. Neither the error nor its log may contain a secret. */
async function refusal(call: Promise<unknown>): Promise<string> {
  const thrown = await call.then(
    () => undefined,
    (error: unknown) => error,
  );
  expect(thrown).toMatchObject({ code: "Unavailable" });
  // With all causes, as loggers print it.
  expect(inspect(thrown, { depth: 8 })).not.toContain(password);
  return thrown instanceof A2AError ? thrown.message : "";
}

function urlWith(change: (url: URL) => void): string {
  const url = new URL(server.url);
  change(url);
  return url.href;
}

async function admin(text: string): Promise<void> {
  const client = new pg.Client({ connectionString: server.url });
  client.on("error", () => undefined);
  await client.connect();
  try {
    await client.query(text);
  } finally {
    await client.end();
  }
}

describe("a database that restarts", () => {
  test.each(["stop", "crash"] as const)("after a %s, calls wait, and take effect once", async (way) => {
    const db = await open();
    await db.query(`CREATE TABLE ${way}_t (id bigint)`);
    await server[way]();
    const calls = [
      db.query(`SELECT count(*) FROM ${way}_t WHERE id > 5`),
      db.transaction(write, (tx) => tx.query(`INSERT INTO ${way}_t VALUES (1)`)),
      db.transaction({ mode: "read" }, (tx) => tx.query("SELECT 1")),
    ];
    await server.start();
    await expect(Promise.all(calls)).resolves.toHaveLength(3);
    expect((await db.query(`SELECT count(*) FROM ${way}_t`)).rows).toEqual([[1]]);
  });

  test("and is not back within the limit: calls throw Unavailable, and closing does not wait", async () => {
    const db = await open({ outageTimeout: 100 });
    const patient = await open({ outageTimeout: 600_000 });
    await server.stop();
    try {
      expect(await refusal(db.query("SELECT 1"))).toBe("The database cannot be reached now");
      const waiting = refusal(patient.transaction(write, (tx) => tx.query("SELECT 1")));
      await patient.close();
      await waiting;
      expect(await refusal(connect({ database: server.url }))).toBe("The database cannot be reached now");
    } finally {
      await server.start();
    }
  });
});

describe("a replica", () => {
  test("is named in the error for a write; once it is promoted, waiting calls continue", async () => {
    const db = await open({ outageTimeout: 30_000 });
    const store = await postgresStore({ database: server.url });
    const host = probed(store);
    opened.push(host, store);
    const probe = (): Promise<unknown> => host.ready();
    await expect.poll(probe).toEqual([200, '{"status":"ready","changes":"told"}']);
    await db.query("CREATE TABLE promoted (id bigint)");
    await server.stop();
    await expect.poll(probe).toEqual([503, '{"status":"unavailable"}']);
    // The server restarts as a replica.
    const signal = join(server.folder, "data/standby.signal");
    writeFileSync(signal, "", { mode: 0o666 });
    await server.start();
    const impatient = await open({ outageTimeout: 0 });
    expect(impatient.server.readOnly).toBe(true);
    const insert = (on: Database): Promise<unknown> =>
      on.transaction(write, (tx) => tx.query("INSERT INTO promoted VALUES (1)"));
    expect(await refusal(insert(impatient))).toContain("The database is read-only");
    expect(await stateOf(store)).toMatchObject({ writable: false, reason: expect.stringContaining("replica") });
    await expect.poll(probe).toEqual([503, '{"status":"unavailable"}']);
    await expect(impatient.query("SELECT count(*) FROM promoted")).resolves.toMatchObject({ rows: [[0]] });
    const waiting = insert(db);
    await admin("SELECT pg_promote()");
    await waiting;
    await expect.poll(probe).toEqual([200, expect.stringMatching(/"status":"ready","changes":"(?:told|polled)"/)]);
    expect((await db.query("SELECT count(*) FROM promoted")).rows).toEqual([[1]]);
  });
});

describe("a misconfiguration is named, without the password", () => {
  test("a wrong password, an unknown database, no database, no URL", async () => {
    const wrong = urlWith((url) => (url.password = "secret-of-nobody-0123456789"));
    expect(await refusal(connect({ database: wrong }))).toContain("refused the user or its password");
    expect(await refusal(connect({ database: urlWith((url) => (url.pathname = "/none")) }))).toContain(
      "no such database",
    );
    const nowhere = urlWith((url) => (url.port = "1"));
    expect(await refusal(connect({ database: nowhere }))).toBe("The database cannot be reached now");
    for (const url of [`postgres://u:${password}@`, `u:${password}@host`, `mysql://u:${password}@host/db`]) {
      expect(await refusal(connect({ database: url }))).toContain("The URL of the database cannot be used");
    }
  });

  test("too many connections", async () => {
    await admin(`CREATE ROLE few LOGIN PASSWORD '${password}' CONNECTION LIMIT 1`);
    const url = urlWith((it) => (it.username = "few"));
    const db = await open({ database: url, outageTimeout: 100 });
    await db.transaction({ mode: "read" }, async () => {
      expect(await refusal(db.query("SELECT 1"))).toBe("The database has too many connections");
    });
  });

  // A test cannot fill the disk, so the server sends the same error.
  test.each([
    ["53100", "The disk of the database is full"],
    ["53200", "The database is out of memory"],
    ["57P02", "The database crashed"],
    ["XX001", "The database reported corrupt data"],
  ])("the state %s", async (state, sentence) => {
    const db = await open({ outageTimeout: 50 });
    const raise = `DO $$ BEGIN RAISE EXCEPTION 'x' USING ERRCODE = '${state}'; END $$`;
    expect(await refusal(db.query(raise))).toContain(sentence);
    expect(await refusal(db.transaction(write, (tx) => tx.query(raise)))).toContain(sentence);
  });
});

describe("TLS", () => {
  const encrypted = "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()";
  const withMode = (mode: string, more: Readonly<Record<string, string>> = {}, host = "localhost"): string =>
    urlWith((url) => {
      url.hostname = host;
      for (const [name, value] of Object.entries({ sslmode: mode, ...more })) url.searchParams.set(name, value);
    });

  test.each([
    ["disable", {}, false],
    ["prefer", {}, true],
    ["require", {}, true],
    ["verify-full", { sslrootcert: "CERTIFICATE" }, true],
    ["verify-ca", { sslrootcert: "CERTIFICATE" }, true],
  ])("sslmode=%s", async (mode, more, isEncrypted) => {
    const files = Object.fromEntries(Object.keys(more).map((name) => [name, certificate]));
    const db = await open({ database: withMode(mode, files) });
    expect((await db.query(encrypted)).rows).toEqual([[isEncrypted]]);
  });

  test("verify-full rejects an untrusted certificate, and one for another host", async () => {
    expect(await refusal(connect({ database: withMode("verify-full") }))).toContain("certificate");
    const other = withMode("verify-full", { sslrootcert: certificate }, "127.0.0.1");
    expect(await refusal(connect({ database: other }))).toContain("certificate");
    const authority = await open({ database: withMode("verify-ca", { sslrootcert: certificate }, "127.0.0.1") });
    expect((await authority.query(encrypted)).rows).toEqual([[true]]);
  });

  test("a missing certificate is named, and is not an outage", async () => {
    const missing = withMode("verify-full", { sslrootcert: "/nowhere/ca.pem" });
    expect(await refusal(connect({ database: missing }))).toContain("does not exist");
  });

  test("prefer continues without it if the server has none, and says so; require does not", async () => {
    const plain = await startPostgres();
    try {
      const { lines, logger } = recorder();
      const db = await connect({ database: `${plain.url}?sslmode=prefer`, logger });
      expect((await db.query(encrypted)).rows).toEqual([[false]]);
      await db.close();
      expect(lines).toEqual([expect.stringContaining("not encrypted")]);
      expect(await refusal(connect({ database: `${plain.url}?sslmode=require` }))).toContain("requires TLS");
    } finally {
      await plain.remove();
    }
  });
});
