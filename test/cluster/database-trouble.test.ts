import { chownSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { inspect } from "node:util";
import pg from "pg";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { password, startPostgres, unprivileged, type PostgresServer } from "../postgres/server.ts";
import { smallDisk } from "../small-disk.ts";
import { Counting, messageOf, startCounter, type Answer } from "./counters.ts";

/* The database answers, but cannot execute writes. Tests what a server's clients and probes see (docs/operate.md, A2A 1.0 §11.6), and its log. */

let server: PostgresServer;

beforeAll(async () => {
  server = await startPostgres();
});
afterAll(() => server.remove());

async function run(text: string, database = server.url): Promise<readonly Readonly<Record<string, unknown>>[]> {
  const client = new pg.Client({ connectionString: database });
  client.on("error", () => undefined);
  await client.connect();
  try {
    return (await client.query<Record<string, unknown>>(text)).rows;
  } finally {
    await client.end();
  }
}

const refusedForNow = (answer: Answer): void => {
  expect([answer.status, answer.text]).toEqual([503, expect.stringContaining("UNAVAILABLE")]);
  expect(Number(answer.headers.get("retry-after"))).toBeGreaterThan(0);
};

const finished = new Counting();
finished.isOver = true;
/** Returns a message whose task ends immediately. */
const short = (): object => ({ ...messageOf("End"), configuration: {} });

describe("serialization failures (40001) and deadlocks (40P01)", () => {
  test.each(["40001", "40P01"])(
    "%s is retried internally, and no client sees it; without end it is rejected after a few attempts",
    async (state) => {
      const schema = `conflicts_${state.toLowerCase()}`;
      const counter = await startCounter("one", server.url, finished, { store: { schema } });
      // The numbers come from a sequence, because a rollback does not reset a sequence.
      await run(`CREATE SEQUENCE ${schema}.tries;
      CREATE FUNCTION ${schema}.conflict() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        IF nextval('${schema}.tries') % 5 <> 0 THEN RAISE EXCEPTION 'x' USING ERRCODE = '${state}'; END IF; RETURN NEW; END $$;
      CREATE TRIGGER conflict BEFORE INSERT ON ${schema}.tasks FOR EACH ROW EXECUTE FUNCTION ${schema}.conflict()`);
      const answer = await counter.post("/message:send", short());
      expect([answer.status, answer.text]).toEqual([200, expect.stringContaining("TASK_STATE_COMPLETED")]);
      const tries = async (): Promise<number> =>
        Number((await run(`SELECT last_value FROM ${schema}.tries`))[0]?.["last_value"]);
      expect(await tries()).toBe(5);
      await run(`CREATE OR REPLACE FUNCTION ${schema}.conflict() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        PERFORM nextval('${schema}.tries'); RAISE EXCEPTION 'x' USING ERRCODE = '${state}'; END $$`);
      refusedForNow(await counter.post("/message:send", short()));
      expect(await tries()).toBe(5 + 8);
      await run(`DROP TRIGGER conflict ON ${schema}.tasks`);
      expect((await counter.post("/message:send", short())).status).toBe(200);
      const { tasks } = JSON.parse((await counter.get("/tasks")).text) as { tasks: readonly unknown[] };
      expect(tasks).toHaveLength(2);
    },
  );
});

describe("too many connections", () => {
  test("calls wait for one; after `outageTimeout` they are rejected, as the log says, and service resumes automatically", async () => {
    await run(`CREATE ROLE few LOGIN PASSWORD '${password}'; GRANT CREATE ON DATABASE postgres TO few`);
    const url = new URL(server.url);
    url.username = "few";
    const counters = await Promise.all(
      [30_000, 300].map((outageTimeout) =>
        startCounter("one", url.href, finished, { store: { schema: `few_${outageTimeout}`, outageTimeout } }),
      ),
    );
    const [patient, impatient] = counters as [(typeof counters)[0], (typeof counters)[0]];
    // Simulates that other users have taken all connections.
    const end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'few'";
    await run("ALTER ROLE few CONNECTION LIMIT 0");
    // A connection attempt that has already begun may still succeed a moment later.
    await expect.poll(() => run(end)).toEqual([]);
    const waiting = patient.post("/message:send", short());
    refusedForNow(await impatient.post("/message:send", short()));
    refusedForNow(await impatient.get("/tasks"));
    await expect.poll(async () => (await impatient.get("/readyz")).status).toBe(503);
    expect((await impatient.get("/healthz")).status).toBe(200);
    expect(inspect(impatient.log, { depth: 8 })).toContain("too many connections");
    await run("ALTER ROLE few CONNECTION LIMIT -1");
    expect((await waiting).status).toBe(200);
    await expect.poll(async () => (await impatient.get("/readyz")).status).toBe(200);
    expect((await impatient.post("/message:send", short())).status).toBe(200);
  });
});

describe("a disk that is full", () => {
  test("writes are rejected and named, reads continue, turns end with nothing half written, and it continues when there is space", async () => {
    const folder = join(server.folder, "small");
    const disk = smallDisk(folder);
    const tables = join(folder, "tables");
    const user = unprivileged();
    if (disk) mkdirSync(tables);
    if (disk && user) chownSync(tables, user.uid, user.gid);
    const url = new URL(server.url);
    url.pathname = "/full";
    await run(disk ? `CREATE TABLESPACE small LOCATION '${tables}'` : "SELECT 1");
    await run(`CREATE DATABASE full${disk ? " TABLESPACE small" : ""}`.replace("full", '"full"'));
    onTestFinished(async () => {
      await run('DROP DATABASE "full" WITH (FORCE)');
      if (disk) await run("DROP TABLESPACE small");
    });
    const counting = new Counting();
    const counter = await startCounter("one", url.href, counting, {
      serve: { lease: { isGone: () => false, ttl: 1_000 } },
    });
    const stream = await counter.stream("Count");
    await expect.poll(() => stream.numbers.length, { interval: 10 }).toBeGreaterThan(3);
    if (disk) disk.fill();
    else {
      // The test cannot fill the server's disk, so a trigger raises the same error.
      await run(
        `CREATE FUNCTION parley.no() RETURNS trigger LANGUAGE plpgsql AS
          'BEGIN RAISE EXCEPTION ''could not extend file'' USING ERRCODE = ''53100''; END';
         CREATE TRIGGER no BEFORE INSERT ON parley.log FOR EACH ROW EXECUTE FUNCTION parley.no()`,
        url.href,
      );
    }
    // Small rows would still fit into the existing pages for a while.
    const large = (): object => messageOf("x".repeat(200_000));
    const probe = async (): Promise<number> => {
      refusedForNow(await counter.post("/message:send", large()));
      return (await counter.get("/readyz")).status;
    };
    // If a small write succeeds, the disk has space again.
    await expect.poll(probe).toBe(503);
    expect((await counter.get("/healthz")).status).toBe(200);
    expect((await counter.get(`/tasks/${stream.taskId}`)).status).toBe(200);
    expect(inspect(counter.log, { depth: 8 })).toContain("The disk of the database is full");
    if (disk) disk.empty();
    else await run("DROP TRIGGER no ON parley.log", url.href);
    await expect.poll(async () => (await counter.post("/message:send", large())).status).toBe(200);
    await expect.poll(async () => (await counter.get("/readyz")).status).toBe(200);
    counting.isOver = true;
    await expect
      .poll(async () => (await counter.get(`/tasks/${stream.taskId}`)).text)
      .toContain("TASK_STATE_COMPLETED");
    const { artifacts } = JSON.parse((await counter.get(`/tasks/${stream.taskId}`)).text) as {
      artifacts: readonly { artifactId: string }[];
    };
    expect(artifacts.map(({ artifactId }) => Number(artifactId))).toEqual(artifacts.map((_, at) => at));
    const { tasks } = JSON.parse((await counter.get("/tasks")).text) as { tasks: readonly unknown[] };
    expect(tasks).toHaveLength(2);
  });
});
