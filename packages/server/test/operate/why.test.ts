import { describe, expect, it } from "vitest";
import { bearer } from "@parley/a2a/auth";
import { safeSentences } from "../../src/engine/run/phase.ts";
import { ageOf, type OperatedTask, type ShownTask, type TaskList } from "../../src/operate/port.ts";
import { memoryStore, type Store, type TaskAppend } from "../../src/store/index.ts";
import { gate, serve, until, type Served } from "./support.ts";

/** Tests why and since when a task waits or has ended, according to the API, and what lists show of the task. */

const agent = "/";

const whyOf = (on: Served, taskId: string, kind: string): Promise<void> =>
  until(async () => (await on.why(taskId)).kind === kind);

const listed = async ({ ops }: Served, query: string): Promise<readonly OperatedTask[]> =>
  (await ops<TaskList>(`/v1/tasks?${query}`)).body.tasks;

/** Returns a stored task of an agent, with effects. */
function stored(taskId: string, more: Partial<TaskAppend> = {}, of: string = agent): TaskAppend {
  const state = "TASK_STATE_WORKING";
  const status = { state, timestamp: new Date(1_000).toISOString() };
  const json = JSON.stringify({ id: taskId, contextId: "c", status, history: [] });
  const record = { kind: "task", state, json, time: 1_000, actor: "user", turn: 1, attempt: 1 } as const;
  return { task: { agent: of, owner: "o", taskId }, create: { contextId: "c" }, records: [record], ...more };
}

/** Starts a server with an agent that obeys the message. */
function busy(hold: Promise<void> = Promise.resolve(), store: Store = memoryStore()): Served {
  const onMessage: Parameters<typeof serve>[0] = async function* (turn) {
    yield turn.working("On it");
    if (turn.text === "run") await hold;
    if (turn.text === "wait") yield* turn.waitFor("paid");
    if (turn.text === "sleep") yield* turn.sleep(3_600_000);
    if (turn.text === "ask") return yield turn.inputRequired("Which one?");
    if (turn.text === "throw") throw new Error("postgres://user:secret@db refused");
    if (turn.text === "fail") return yield turn.failed("secret of the owner");
    if (turn.text === "nonsense") yield { kind: "nonsense" } as never;
    yield turn.completed("Done");
  };
  return serve(onMessage, { store });
}

describe("a reason", () => {
  it.each([
    ["run", "running"],
    ["wait", "event"],
    ["sleep", "time"],
    ["ask", "input"],
    ["end", "done"],
  ])("of a task that does %s has the time since when", async (text, kind) => {
    const hold = gate();
    const on = busy(hold.passed);
    const began = Date.now();
    const taskId = await on.send(text);
    await whyOf(on, taskId, kind);
    const since = Date.parse((await on.why(taskId)).since);
    expect(since).toBeGreaterThanOrEqual(began);
    expect(since).toBeLessThanOrEqual(Date.now());
    hold.open();
  });

  it("of a suspended task has the time of the suspension, and of a delegation that of its beginning", async () => {
    const on = busy();
    const suspended = { turn: 1, attempt: 3, input: 1, deaths: 3, suspended: true } as const;
    const at = { effect: "feature", op: "set", feature: "suspended", key: "at", value: "9000" } as const;
    const run = { effect: "run", run: { turn: 1, attempt: 1, input: 1 } } as const;
    const until = Date.now() + 3_600_000;
    const lease = { effect: "lease", op: "acquire", holder: "n", now: 1, until } as const;
    const row = { number: 1, agent: "Clerk", hash: "h", round: 1, messageId: "m", since: 5_000 };
    const open = { effect: "feature", op: "set", feature: "delegation", key: "d", value: JSON.stringify(row) } as const;
    await on.store.append([
      stored("of-old", { effects: [{ effect: "run", run: suspended }] }),
      stored("suspended", { effects: [{ effect: "run", run: suspended }, at] }),
      stored("delegates", { effects: [lease, run, open] }),
    ]);
    expect(await on.why("of-old")).toMatchObject({ kind: "suspended", since: "1970-01-01T00:00:01.000Z" });
    expect(await on.why("suspended")).toMatchObject({ kind: "suspended", since: "1970-01-01T00:00:09.000Z" });
    expect(await on.why("delegates")).toMatchObject({
      kind: "delegation",
      text: "The task waits for an answer of agent Clerk",
      since: "1970-01-01T00:00:05.000Z",
    });
  });

  it("of a paused agent names the operator, the reason, and since when it is paused", async () => {
    const authenticator = bearer({ "token-of-ada": { subject: "ada" } });
    const on = serve(
      async function* (turn) {
        yield turn.completed("Done");
      },
      { operators: { authenticator, authorize: () => true } },
    );
    const headers = { authorization: "Bearer token-of-ada" };
    const { body } = await on.ops<{ paused: { since: string } }>(
      "/v1/acts/pause",
      { agent, reason: "bad prompt" },
      headers,
    );
    const taskId = await on.send("Go");
    const why = (await on.ops<ShownTask>(`/v1/why?agent=%2F&taskId=${taskId}`, undefined, headers)).body.why;
    expect(why).toMatchObject({ kind: "agentPaused", since: body.paused.since, by: "ada", reason: "bad prompt" });
    expect(why.text).toBe("Agent / is paused by ada: bad prompt");
  });

  it("is as old as its largest unit says", () => {
    const ages = [-5, 0, 119, 120, 7_199, 7_200, 172_799, 172_800].map((seconds) =>
      ageOf(new Date(Date.now() - seconds * 1_000).toISOString()),
    );
    expect(ages).toEqual(["0 s", "0 s", "119 s", "2 min", "119 min", "2 h", "47 h", "2 d"]);
  });
});

describe("a task that is over says", () => {
  it.each([
    [
      "throw",
      "failed",
      /^The task is over: failed, because its agent threw an error\. .*: parley logs --task \S+\. A new task/,
    ],
    ["nonsense", "invalid", /, because its agent yielded an invalid event\. /],
    [
      "fail",
      "reported",
      /, because its agent reported the failure; the status message, which its owner can read, says more\. A/,
    ],
    ["end", undefined, /^The task is over: completed$/],
  ])("why, if its agent does %s, without the agent's words", async (text, cause, expected) => {
    const on = busy();
    const taskId = await on.send(text);
    await whyOf(on, taskId, "done");
    const why = await on.why(taskId);
    expect(why.kind === "done" && why.cause).toBe(cause);
    expect(why.text).toMatch(expected);
    expect(JSON.stringify(why)).not.toContain("secret");
    expect(why.help).toBe(text === "end" ? undefined : `parley ops resume ${taskId}`);
  });

  it("each cause that the engine stores, and an unknown one of its own is the failure of a delegation", async () => {
    const on = busy();
    const sentences = { ...safeSentences, delegation: "The agent Clerk failed.", reported: safeSentences.failed };
    for (const [cause, text] of Object.entries(sentences)) {
      const taskId = `of-${cause}`;
      const state = "TASK_STATE_FAILED";
      const messageId = cause === "reported" ? "m" : `${taskId}-1-system`;
      const message = { messageId, role: "ROLE_AGENT", parts: [{ text }] };
      const json = JSON.stringify({ taskId, contextId: "c", status: { state, message } });
      const end = { kind: "statusUpdate", state, json, time: 2_000, actor: "system", turn: 1, attempt: 1 } as const;
      const { records, ...task } = stored(taskId);
      await on.store.append([{ ...task, records: [...records, end] }]);
      expect(await on.why(taskId)).toMatchObject({ kind: "done", cause, since: "1970-01-01T00:00:02.000Z" });
    }
  });

  it("which operator canceled it, with the reason, and not that its owner did", async () => {
    const on = busy();
    const [one, two] = [await on.send("ask"), await on.send("ask")];
    for (const taskId of [one, two]) await whyOf(on, taskId, "input");
    await on.ops("/v1/acts/cancel", { agent, taskId: one, reason: "stuck" });
    await on.ops("/v1/acts/cancel", { agent, taskId: one, reason: "again" });
    expect(await on.why(one)).toMatchObject({
      cause: "operator",
      text: "The task is over: canceled by an operator: stuck",
    });
    const head = await on.store.head({ agent }, two);
    if (head === undefined) throw new Error("there is no task");
    const status = { state: "TASK_STATE_CANCELED" } as const;
    const json = JSON.stringify({ taskId: two, contextId: head.contextId, status });
    const end = { kind: "statusUpdate", json, time: 1, actor: "system", turn: 1, attempt: 1, ...status } as const;
    await on.store.append([{ task: head.task, records: [end] }]);
    const { text, kind } = await on.why(two);
    expect([kind, text]).toEqual(["done", "The task is over: canceled"]);
  });
});

describe("the list", () => {
  it("says what tasks wait for, with one read of a page", async () => {
    const hold = gate();
    const asked: string[] = [];
    const store = memoryStore();
    const note = (name: PropertyKey, value: unknown): unknown => {
      if (typeof value !== "function") return value;
      return (...given: unknown[]) => {
        asked.push(String(name));
        return Reflect.apply(value, store, given) as unknown;
      };
    };
    const counted = new Proxy(store, { get: (of, name) => note(name, Reflect.get(of, name, of)) });
    const on = busy(hold.passed, counted);
    const run = { effect: "run", run: { turn: 1, attempt: 1, input: 1 } } as const;
    const lease = { effect: "lease", op: "acquire", holder: "n", now: 1, until: Date.now() + 3_600_000 } as const;
    const open = {
      effect: "feature",
      op: "set",
      feature: "delegation",
      key: "d",
      value: `{"number":1,"agent":"Clerk"}`,
    } as const;
    await on.store.append([stored("delegates", { effects: [lease, run, open] })]);
    const [waits, runs, asks] = [await on.send("wait"), await on.send("run"), await on.send("ask")];
    await whyOf(on, waits, "event");
    await whyOf(on, runs, "running");
    await whyOf(on, asks, "input");
    await on.ops("/v1/acts/pause", { agent });
    const queued = await on.send("end");
    const before = asked.length;
    const page = await listed(on, "limit=50");
    // This list would contain reads of each task. The page itself is `store.operators.tasks`.
    expect(asked.slice(before).filter((name) => name === "features" || name === "head")).toEqual([]);
    const found = new Map(page.map(({ taskId, waits: word }) => [taskId, word]));
    const expected: readonly (readonly [string, OperatedTask["waits"]])[] = [
      ["delegates", "delegate"],
      [waits, "wait"],
      [runs, undefined],
      [asks, undefined],
      [queued, "queue"],
    ];
    expect(found).toEqual(new Map(expected));
    expect((await on.ops<ShownTask>("/v1/task?agent=%2F&taskId=delegates")).body.task.waits).toBe("delegate");
    hold.open();
  });

  it("has the tasks of an ID of all agents, as far as the other filters match", async () => {
    const on = busy();
    await on.store.append([stored("twice"), stored("twice", {}, "/b"), stored("once", {}, "/b")]);
    const agents = async (query: string) => (await listed(on, query)).map((task) => task.agent).toSorted();
    expect(await agents("taskId=twice")).toEqual(["/", "/b"]);
    expect(await agents("taskId=twice&limit=1")).toHaveLength(1);
    expect(await agents("taskId=once")).toEqual(["/b"]);
    expect(await agents("taskId=once&agent=%2F")).toEqual([]);
    expect(await agents("taskId=once&states=TASK_STATE_FAILED")).toEqual([]);
    expect(await agents("taskId=once&node=n")).toEqual([]);
    expect(await agents("taskId=none")).toEqual([]);
  });
});

it("draining a node says if nobody could check its name", async () => {
  const on = busy();
  const { body } = await on.ops<{ nodes: readonly { name: string; self: boolean }[] }>("/v1/nodes");
  const own = body.nodes.find(({ self }) => self)?.name ?? "";
  expect((await on.ops("/v1/acts/drain", { node: "typo" })).body).toEqual({ ok: true, node: "typo", unchecked: true });
  expect((await on.ops("/v1/acts/drain", { node: own })).body).toEqual({ ok: true, node: own });
});

it("the root of the API points to its OpenAPI document (RFC 8631)", async () => {
  const on = busy();
  const document = "http://127.0.0.1:4000/ops/openapi.json";
  const response = await on.handler.fetch(new Request("http://127.0.0.1:4000/ops"));
  expect([response.status, await response.json()]).toEqual([200, { document }]);
  expect(response.headers.get("link")).toBe(`<${document}>; rel="service-desc"; type="application/json"`);
  expect((await on.handler.fetch(new Request("http://127.0.0.1:4000/ops", { method: "POST" }))).status).toBe(405);
  const closed = serve(async function* () {}, {
    operators: { authenticator: bearer({ "token-of-ada": { subject: "ada" } }), authorize: () => true },
  });
  expect((await closed.handler.fetch(new Request("http://127.0.0.1:4000/ops"))).status).toBe(401);
});
