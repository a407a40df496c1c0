import { expect, onTestFinished, test } from "vitest";
import { useDatabase } from "../postgres/database.ts";
import { password } from "../postgres/server.ts";
import { Counting, messageOf, startCounter, type Counter } from "./counters.ts";
import { startNode } from "./node-process.ts";

/* Tests clock jumps and corrections while servers run (docs/operate.md, docs/decisions/time.md). */

const database = useDatabase();
const hour = 3_600_000;
const minute = 60_000;

/** Waits until every process has sent several more heartbeats. If a process considered another one dead, it would act before that. */
async function beats(schema: string): Promise<void> {
  const read = async (): Promise<readonly number[]> => {
    const { rows } = await database().run(`SELECT beats::float8 AS beats FROM ${schema}.nodes ORDER BY name`);
    return (rows as { beats: number }[]).map((row) => row.beats);
  };
  const before = await read();
  await expect.poll(async () => (await read()).every((count, at) => count - (before[at] ?? 0) > 12)).toBe(true);
}

async function timeOfDatabase(): Promise<number> {
  const { rows } = await database().run("SELECT extract(epoch FROM clock_timestamp())::float8 * 1000 AS now");
  return (rows[0] as { now: number }).now;
}

/** Replaces the wall clock of a process. Each SIGUSR2 sets the clock: first forward by an hour, then back by two. */
const clock = `const Wall = Date, steps = [${hour}, ${-hour}];
  let by = 0;
  globalThis.Date = class extends Wall {
    constructor(...given) { given.length > 0 ? super(...given) : super(Wall.now() + by); }
    static now() { return Wall.now() + by; }
  };
  process.on("SIGUSR2", () => {
    by = steps.shift();
    process.stdout.write(JSON.stringify({ event: "jumped", text: String(by) }) + "\\n");
  });`;

test("the wall clock of a node jumps by an hour, forward and back: it keeps its tasks, takes none, and its times are those of the database", async () => {
  const schema = "jumping";
  const execArgv = ["--import", `data:text/javascript,${encodeURIComponent(clock)}`];
  const [a, b] = await Promise.all([
    startNode(database().url, schema, { lease: { ttl: 2_600 } }, onTestFinished, execArgv),
    startNode(database().url, schema, { lease: { ttl: 2_600 } }),
  ]);
  const [held, others] = [await a.begin("hold"), await b.begin("hold")];
  await Promise.all([a.until("working", { taskId: held }), b.until("working", { taskId: others })]);
  for (const by of [hour, -hour]) {
    a.child.kill("SIGUSR2");
    await a.until("jumped", { text: String(by) });
    await beats(schema);
    const client = await a.client();
    const { task } = await client.sendMessage({ message: "again" });
    expect(task?.status.state).toBe("TASK_STATE_COMPLETED");
    expect(Math.abs(Date.parse(task?.status.timestamp ?? "") - (await timeOfDatabase()))).toBeLessThan(10 * minute);
    // The node's own wall clock is wrong, so the node must not compare its time with the times that other nodes stored.
    expect((await client.listTasks({})).tasks.length).toBeGreaterThan(2);
  }
  const said = [...a.said, ...b.said];
  expect(said.filter(({ event, attempt }) => event === "begun" && attempt !== 1)).toEqual([]);
  expect(said.filter(({ event }) => event === "aborted" || event === "refused")).toEqual([]);
  await (await b.client()).cancelTask(held);
  expect(await a.until("aborted", { taskId: held })).toMatchObject({ kind: "canceled" });
});

/** Creates a database user whose clock a test can set. The test's clock functions take precedence over PostgreSQL's functions of the same names. */
async function jumpingDatabase(): Promise<{ readonly url: string; jump(ms: number): Promise<void> }> {
  const role = `jumpy_${crypto.randomUUID().slice(0, 8)}`;
  await database().run(`CREATE ROLE ${role} LOGIN PASSWORD '${password}'; CREATE SCHEMA fake;
    CREATE TABLE fake.jump (by interval NOT NULL); INSERT INTO fake.jump VALUES ('0');
    CREATE FUNCTION fake.clock_timestamp() RETURNS timestamptz LANGUAGE sql VOLATILE AS
      'SELECT pg_catalog.clock_timestamp() + (SELECT by FROM fake.jump)';
    CREATE FUNCTION fake.now() RETURNS timestamptz LANGUAGE sql STABLE AS
      'SELECT pg_catalog.now() + (SELECT by FROM fake.jump)';
    GRANT USAGE ON SCHEMA fake TO ${role}; GRANT SELECT ON fake.jump TO ${role};
    ALTER ROLE ${role} SET search_path = fake, pg_catalog, public`);
  const { rows } = await database().run("SELECT current_database() AS name");
  await database().run(`GRANT CREATE ON DATABASE ${(rows[0] as { name: string }).name} TO ${role}`);
  onTestFinished(async () => void (await database().run(`DROP OWNED BY ${role} CASCADE; DROP ROLE ${role}`)));
  const url = new URL(database().url);
  [url.username, url.password] = [role, password];
  return {
    url: url.href,
    jump: async (ms) => void (await database().run("UPDATE fake.jump SET by = $1 * interval '1 millisecond'", [ms])),
  };
}

test("the clock of the database jumps by an hour, forward and back: no process counts as dead, runs continue, and new times follow the clock", async () => {
  const { url, jump } = await jumpingDatabase();
  const counting = new Counting();
  const options = { store: { schema: "jumped" }, serve: { lease: { isGone: () => false, ttl: 2_600 } } };
  const start = (name: string): Promise<Counter> => startCounter(name, url, counting, options);
  const nodes = [await start("one"), await start("two")];
  const streams = await Promise.all(nodes.map((node) => node.stream("Count")));
  for (const [at, by] of [hour, -hour].entries()) {
    await jump(by);
    // A node that starts now reads a different time than the nodes that read the clock earlier.
    const late = await start(`late ${at}`);
    const stream = await late.stream("Count");
    const { status } = JSON.parse((await late.get(`/tasks/${stream.taskId}`)).text) as {
      status: { timestamp: string };
    };
    expect(Math.abs(Date.parse(status.timestamp) - (await timeOfDatabase()) - by)).toBeLessThan(10 * minute);
    nodes.push(late);
    streams.push(stream);
    await beats("jumped");
    for (const node of nodes) {
      expect((await node.post("/message:send", messageOf("Count"))).status).toBe(200);
      expect((await node.get("/readyz")).status).toBe(200);
    }
  }
  expect(counting.happened.filter(({ what, attempt }) => what === "aborted" || attempt !== 1)).toEqual([]);
  counting.isOver = true;
  for (const stream of streams) {
    await expect.poll(() => stream.isOpen, { interval: 10 }).toBe(false);
    expect(stream.events.at(-1)).toContain("TASK_STATE_COMPLETED");
    expect(stream.numbers).toEqual(stream.numbers.map((_, n) => n));
  }
});
