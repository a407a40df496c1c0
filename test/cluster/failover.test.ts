import { inspect } from "node:util";
import pg from "pg";
import { expect, onTestFinished, test } from "vitest";
import { startProxy } from "../postgres/proxy.ts";
import { startPostgres } from "../postgres/server.ts";
import { Counting, messageOf, startCounter } from "./counters.ts";
import { startNode } from "./node-process.ts";

/*
 * A zone fails, and with it a node and the database's primary. The database's host name then leads to a replica, which is promoted a little
 * later (docs/operate.md). The replica has every acknowledged commit (synchronous replication).
 */

async function run(url: string, ...texts: readonly string[]): Promise<readonly Readonly<Record<string, unknown>>[]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    let rows: readonly Readonly<Record<string, unknown>>[] = [];
    for (const text of texts) ({ rows } = await client.query<Record<string, unknown>>(text));
    return rows;
  } finally {
    await client.end();
  }
}

test("a node and the primary are lost at once: until the replica is promoted writes are rejected and named, then everything continues automatically, and nothing is lost", async () => {
  const primary = await startPostgres();
  onTestFinished(() => primary.remove());
  const replica = await startPostgres({ replicaOf: primary });
  onTestFinished(() => replica.remove());
  await run(primary.url, "ALTER SYSTEM SET synchronous_standby_names = '*'", "SELECT pg_reload_conf()");
  const synchronous = "SELECT sync_state FROM pg_stat_replication";
  await expect.poll(() => run(primary.url, synchronous)).toEqual([{ sync_state: "sync" }]);
  // The proxy plays the role of the database's host name.
  const proxy = await startProxy(primary.port);
  onTestFinished(() => proxy.close());
  const url = primary.url.replace(`:${primary.port}/`, `:${proxy.port}/`);

  const schema = "zones";
  const counting = new Counting();
  const lease = { ttl: 1_000 };
  const lost = await startNode(url, schema, { lease });
  const stays = await startCounter("stays", url, counting, {
    store: { schema, outageTimeout: 500 },
    serve: { lease: { ...lease, isGone: () => false } },
  });
  const held = await lost.begin("hold");
  await lost.until("working", { taskId: held });
  const stream = await stays.stream("Count");
  await expect.poll(() => stream.numbers.length, { interval: 10 }).toBeGreaterThan(3);

  lost.child.kill("SIGKILL");
  await primary.crash();
  proxy.target = replica.port;
  await expect.poll(() => stream.isOpen, { interval: 10 }).toBe(false);
  expect(stream.events.at(-1)).toContain("UNAVAILABLE");
  const refused = await stays.post("/message:send", messageOf("Count"));
  expect([refused.status, refused.text]).toEqual([503, expect.stringContaining("UNAVAILABLE")]);
  expect(Number(refused.headers.get("retry-after"))).toBeGreaterThan(0);
  await expect.poll(async () => (await stays.get("/readyz")).status).toBe(503);
  expect((await stays.get("/healthz")).status).toBe(200);
  await expect
    .poll(() => inspect(stays.log, { depth: 8 }))
    .toContain("The database is read-only: the server is a replica");
  await expect.poll(async () => (await stays.get(`/tasks/${held}`)).text).toContain("TASK_STATE_WORKING");

  await run(replica.url, "SELECT pg_promote()");
  await expect.poll(async () => (await stays.get("/readyz")).status).toBe(200);
  for (const taskId of [held, stream.taskId]) {
    const again = { node: "stays", what: "begun", taskId, attempt: 2 };
    await expect.poll(() => counting.happened).toContainEqual(again);
  }
  counting.isOver = true;
  const stateOf = async (taskId: string): Promise<string> => (await stays.get(`/tasks/${taskId}`)).text;
  await expect.poll(() => stateOf(held)).toContain("TASK_STATE_COMPLETED");
  await expect.poll(() => stateOf(stream.taskId)).toContain("TASK_STATE_COMPLETED");
  const { artifacts } = JSON.parse(await stateOf(stream.taskId)) as { artifacts: readonly { artifactId: string }[] };
  expect(artifacts.map(({ artifactId }) => Number(artifactId))).toEqual(artifacts.map((_, at) => at));
  // Every acknowledged event is stored.
  expect(artifacts.length).toBeGreaterThanOrEqual(stream.numbers.length);
  expect((await stays.post("/message:send", messageOf("Count"))).status).toBe(200);
});
