import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { connect } from "@parley/a2a";
import { startPostgres, type PostgresServer } from "../postgres/server.ts";
import { startProxy, type Proxy } from "../postgres/proxy.ts";
import { Counting, messageOf, startCounter, type Answer, type Counter } from "./counters.ts";

/*
 * The database becomes unavailable in the middle of streams, and returns. Tests what a server's clients and probes see (docs/operate.md, A2A 1.0
 * §3.3.2, §11.6). The statement timeouts are longer than a test may take, so that no timeout ends a statement while the database is silent.
 */

let server: PostgresServer;
let proxy: Proxy;
let url = "";
let schemas = 0;
const never = 3_600_000;

let isStopped = false;
const stop = async (): Promise<void> => {
  isStopped = true;
  await server.stop();
};
const start = async (): Promise<void> => {
  await server.start();
  isStopped = false;
};

beforeAll(async () => {
  server = await startPostgres();
  proxy = await startProxy(server.port);
  url = server.url.replace(`:${server.port}/`, `:${proxy.port}/`);
});
afterEach(async () => {
  proxy.isSilent = false;
  if (isStopped) await start();
});
afterAll(async () => {
  await proxy.close();
  await server.remove();
});

/** Starts a counter. `ttl`: the attempts of resumable runs end if the database is unavailable for longer than this. */
const started = (name: string, counting: Counting, outageTimeout: number, ttl = 1_000): Promise<Counter> =>
  startCounter(name, url, counting, {
    store: { schema: `away_${schemas}`, outageTimeout, statementTimeout: never, connectTimeout: 1_000 },
    serve: { lease: { isGone: () => false, ttl } },
  });

const refusedForNow = (answer: Answer): void => {
  expect([answer.status, answer.text]).toEqual([503, expect.stringContaining("UNAVAILABLE")]);
  expect(Number(answer.headers.get("retry-after"))).toBeGreaterThan(0);
};

const upTo = (count: number): number[] => Array.from({ length: count }, (_, at) => at);

interface TaskJson {
  readonly status: { readonly state: string; readonly message?: { readonly parts: readonly { text: string }[] } };
  readonly artifacts?: readonly { readonly artifactId: string }[];
}

const taskOf = async (counter: Counter, id: string, path = ""): Promise<TaskJson> => {
  const { status, text } = await counter.get(`${path}/tasks/${id}`);
  return status === 200 ? (JSON.parse(text) as TaskJson) : { status: { state: `${status}` } };
};

const harms: readonly (readonly [what: string, leave: () => Promise<void>, comeBack: () => Promise<void>])[] = [
  ["that is stopped", stop, start],
  [
    "whose packets are lost",
    async () => void (proxy.isSilent = true),
    async () => {
      proxy.isSilent = false;
      // If a call was in progress when the packets were lost, it gets no answer.
      proxy.forget();
    },
  ],
];

describe.each(harms)("a database %s", (_what, leave, comeBack) => {
  test("for less than `outageTimeout` and `lease.ttl`: streams stay open, calls wait, and nothing is lost", async () => {
    schemas += 1;
    const counting = new Counting();
    const counter = await started("one", counting, 60_000, 60_000);
    const stream = await counter.stream("Count");
    await expect.poll(() => stream.numbers.length, { interval: 10 }).toBeGreaterThan(3);
    await leave();
    await expect.poll(async () => (await counter.get("/readyz")).status).toBe(503);
    expect((await counter.get("/healthz")).status).toBe(200);
    const said = stream.numbers.length;
    const [got, sent] = [counter.get(`/tasks/${stream.taskId}`), counter.post("/message:send", messageOf("Count"))];
    await comeBack();
    expect([(await got).status, (await sent).status]).toEqual([200, 200]);
    await expect.poll(() => stream.numbers.length, { interval: 10 }).toBeGreaterThan(said + 3);
    expect(stream.isOpen).toBe(true);
    await expect.poll(async () => (await counter.get("/readyz")).status).toBe(200);
    counting.isOver = true;
    await expect.poll(() => stream.isOpen, { interval: 10 }).toBe(false);
    expect(stream.numbers).toEqual(upTo(stream.numbers.length));
    expect(stream.events.at(-1)).toContain("TASK_STATE_COMPLETED");
    expect((await taskOf(counter, stream.taskId)).artifacts).toHaveLength(stream.numbers.length);
    expect(counting.happened.filter(({ what }) => what === "begun" || what === "aborted")).toHaveLength(2);
  });

  test("for longer: calls are rejected, turns fail and their streams end as retryable, nothing is half written, and service resumes automatically", async () => {
    schemas += 1;
    const counting = new Counting();
    const counter = await started("one", counting, 500);
    const [stream, plain] = [await counter.stream("Count"), await counter.stream("Count", "/plain")];
    // A client that resumes its streams does not notice the outage.
    const client = await connect(counter.url);
    const resumed: number[] = [];
    const following = (async () => {
      for await (const { artifactUpdate } of client.sendStreamingMessage("Count"))
        if (artifactUpdate) resumed.push(Number(artifactUpdate.artifact.artifactId));
    })();
    const least = (): number => Math.min(stream.numbers.length, plain.numbers.length, resumed.length);
    await expect.poll(least, { interval: 10 }).toBeGreaterThan(3);
    await leave();
    const calls = [
      counter.get(`/tasks/${stream.taskId}`),
      counter.get("/tasks"),
      counter.post("/message:send", messageOf("Never stored")),
      counter.post(`/tasks/${stream.taskId}:cancel`, {}),
      counter.get(`/tasks/${stream.taskId}:subscribe`),
    ];
    for (const call of calls) refusedForNow(await call);
    for (const each of [stream, plain]) {
      await expect.poll(() => each.isOpen, { interval: 10 }).toBe(false);
      expect(each.events.at(-1)).toContain("UNAVAILABLE");
      expect(each.numbers).toEqual(upTo(each.numbers.length));
    }
    // The turns have ended before their next side effects.
    await expect.poll(() => counting.happened.filter(({ what }) => what === "ended"), { interval: 10 }).toHaveLength(3);
    expect(counting.happened.filter(({ what }) => what === "late step")).toEqual([]);
    await expect.poll(async () => (await counter.get("/readyz")).status).toBe(503);
    expect((await counter.get("/healthz")).status).toBe(200);

    await comeBack();
    await expect.poll(async () => (await counter.get("/readyz")).status).toBe(200);
    // The resumable agent's task continues after its stored events. The other agent's task fails with a reason.
    const again = { taskId: stream.taskId, what: "begun", attempt: 2 };
    await expect.poll(() => counting.happened).toContainEqual(expect.objectContaining(again));
    counting.isOver = true;
    await expect.poll(async () => (await taskOf(counter, stream.taskId)).status.state).toBe("TASK_STATE_COMPLETED");
    await expect
      .poll(async () => (await taskOf(counter, plain.taskId, "/plain")).status.state)
      .toBe("TASK_STATE_FAILED");
    for (const [each, path] of [
      [stream, ""],
      [plain, "/plain"],
    ] as const) {
      const { artifacts = [] } = await taskOf(counter, each.taskId, path);
      const stored = artifacts.map(({ artifactId }) => Number(artifactId));
      expect(stored).toEqual(upTo(stored.length));
      // Every acknowledged event is stored.
      expect(stored.length).toBeGreaterThanOrEqual(each.numbers.length);
    }
    await following;
    expect(resumed).toEqual(upTo(resumed.length));
    const listed = JSON.parse((await counter.get("/tasks")).text) as { tasks: readonly unknown[] };
    expect(listed.tasks).toHaveLength(2);
    // The outage logs one line, however many runs it ended, in addition to the lines of the probe, the listener, and calls.
    const severe = counter.log.filter(({ level }) => level === "error" || level === "warn");
    const others = severe.filter(({ message }) => message !== "Failed to serve request: unavailable");
    expect(others.map(({ message }) => message).sort()).toEqual([
      "Database unavailable; resumable runs resume when it is back, tasks of other agents fail",
      "PostgreSQL: notifications do not arrive; readers poll until they do",
      "Store unavailable; server is not ready",
    ]);
  });
});
