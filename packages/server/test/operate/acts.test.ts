import { describe, expect, it } from "vitest";
import type { Act, OperatedTask } from "../../src/operate/port.ts";
import { gate, serve, until, type Served } from "./support.ts";

/** Tests operators' acts over the REST API (docs/decisions/operators.md). */

const agent = "/";

interface Acted {
  readonly ok: boolean;
  readonly reason?: string;
  readonly message?: string;
  readonly task?: OperatedTask;
  readonly continues?: string;
}

async function actsOf({ ops }: Served): Promise<readonly Act[]> {
  return (await ops<{ readonly acts: readonly Act[] }>("/v1/acts")).body.acts;
}

/** Resolves once the API reports that the task waits for this kind of reason. */
const waitsFor = (on: Served, taskId: string, kind: string): Promise<void> =>
  until(async () => (await on.why(taskId)).kind === kind);

describe("cancel", () => {
  it("cancels a running task even if its agent ignores it, and stores the act in the same commit", async () => {
    const hold = gate();
    const on = serve(async function* (turn) {
      yield turn.working("On it");
      await hold.passed;
      yield turn.completed("Done");
    });
    const taskId = await on.send("Go");
    await waitsFor(on, taskId, "running");
    const { status, body } = await on.ops<Acted>("/v1/acts/cancel", { agent, taskId, reason: "stuck" });
    expect([status, body.task?.state]).toEqual([200, "TASK_STATE_CANCELED"]);
    hold.open();
    const [act] = await actsOf(on);
    expect(act).toMatchObject({ act: "cancel", outcome: "done", reason: "stuck", taskId, after: "canceled" });
    expect(act?.before).toMatch(/^working, turn 1, seq \d+$/);
    expect((await on.why(taskId)).kind).toBe("done");
  });

  it("rejects a task that has changed, with its current state, and a task that has ended", async () => {
    const on = serve(async function* (turn) {
      yield turn.inputRequired("Which one?");
    });
    const taskId = await on.send("Go");
    await waitsFor(on, taskId, "input");
    const seen = (await on.ops<{ task: OperatedTask }>(`/v1/task?agent=%2F&taskId=${taskId}`)).body.task;
    const late = await on.ops<Acted>("/v1/acts/cancel", { agent, taskId, seq: seen.seq + 1 });
    expect(late).toMatchObject({ status: 409, body: { ok: false, reason: "changed", task: seen } });
    expect((await on.ops("/v1/acts/cancel", { agent, taskId, seq: seen.seq })).status).toBe(200);
    const again = await on.ops<Acted>("/v1/acts/cancel", { agent, taskId });
    expect(again).toMatchObject({
      status: 409,
      body: { reason: "notPossible", message: "The task is over: canceled" },
    });
    expect(await on.ops("/v1/acts/cancel", { agent, taskId: "no such" })).toMatchObject({
      status: 404,
      body: { reason: "notFound" },
    });
    expect((await actsOf(on)).map(({ outcome }) => outcome)).toEqual(["refused", "refused", "done", "refused"]);
  });
});

describe("resume", () => {
  it("lets a suspended task run again, once", async () => {
    const on = serve(async function* (turn) {
      yield turn.completed("Done");
    });
    await on.ops("/v1/acts/pause", { agent });
    const taskId = await on.send("Go");
    const key = { agent, owner: (await on.store.head({ agent }, taskId))?.task.owner ?? "", taskId };
    const run = { turn: 1, attempt: 3, input: 1, deaths: 2, alone: true, suspended: true } as const;
    const leave = { effect: "feature", op: "delete", feature: "queue", key: "run" } as const;
    await on.store.append([{ task: key, records: [], effects: [{ effect: "run", run }, leave] }]);
    expect(await on.why(taskId)).toMatchObject({ kind: "suspended", deaths: 2, help: `parley ops resume ${taskId}` });
    const suspended = await on.ops<{ tasks: readonly OperatedTask[] }>("/v1/tasks?suspended=true");
    expect(suspended.body.tasks.map((task) => task.taskId)).toEqual([taskId]);
    expect((await on.ops<Acted>("/v1/acts/resume", { agent, taskId })).body.ok).toBe(true);
    expect((await on.ops<Acted>("/v1/acts/resume", { agent, taskId })).body).toMatchObject({ reason: "notPossible" });
    await on.ops("/v1/acts/unpause", { agent });
    await until(async () => (await on.stateOf(taskId)) === "TASK_STATE_COMPLETED");
  });

  it("continues a failed task in a new task, with its state, its message and the results of its steps", async () => {
    const done: string[] = [];
    let fails = true;
    const on = serve(async function* (turn) {
      yield turn.working("On it");
      await turn.step("book", () => void done.push("book"));
      await turn.step("pay", () => void done.push("pay"));
      if (fails) throw new Error("the printer burns");
      yield turn.completed(`Done: ${turn.text}`);
    });
    const taskId = await on.send("Two tickets");
    await until(async () => (await on.stateOf(taskId)) === "TASK_STATE_FAILED");
    fails = false;
    const { body } = await on.ops<Acted>("/v1/acts/retry-step", {
      agent,
      taskId,
      step: "pay",
      reason: "printer fixed",
    });
    expect(body).toMatchObject({ ok: true, continues: taskId });
    const next = body.task?.taskId ?? "";
    await until(async () => (await on.stateOf(next)) === "TASK_STATE_COMPLETED");
    expect(done).toEqual(["book", "pay", "pay"]);
    const task = (await on.store.load({ agent }, next, { artifacts: true }))?.task;
    expect(task?.history?.[0]?.referenceTaskIds).toEqual([taskId]);
    expect(task?.status.message?.parts[0]?.text).toBe("Done: Two tickets");
    expect(await on.stateOf(taskId)).toBe("TASK_STATE_FAILED");
    const unknown = await on.ops<Acted>("/v1/acts/retry-step", { agent, taskId, step: "fly" });
    expect(unknown).toMatchObject({ status: 409, body: { reason: "notPossible" } });
  });

  it("continues a failed task only once, even if several operators repeat the act concurrently", async () => {
    const on = serve(async function* (turn) {
      yield turn.working("On it");
      throw new Error("the printer burns");
    });
    const taskId = await on.send("Go");
    await until(async () => (await on.stateOf(taskId)) === "TASK_STATE_FAILED");
    const resume = () => on.ops<Acted>("/v1/acts/resume", { agent, taskId });
    const all = await Promise.all(Array.from({ length: 5 }, resume));
    const done = all.filter(({ status }) => status === 200);
    expect(done).toHaveLength(1);
    const again = await resume();
    const text = `Task ${done[0]?.body.task?.taskId} already continues this task`;
    expect(again).toMatchObject({ status: 409, body: { reason: "notPossible", message: text } });
    expect((await on.ops<{ tasks: readonly unknown[] }>("/v1/tasks")).body.tasks).toHaveLength(2);
  });

  it("continues a failed task after a crash between its mark and the new task", async () => {
    const on = serve(async function* (turn) {
      yield turn.working("On it");
      throw new Error("the printer burns");
    });
    const taskId = await on.send("Go");
    await until(async () => (await on.stateOf(taskId)) === "TASK_STATE_FAILED");
    const head = await on.store.head({ agent }, taskId);
    if (head === undefined) throw new Error("There is no task");
    const { task, fence, seq: expected } = head;
    const mark = { effect: "feature", op: "set", feature: "continued", key: "by", value: '"next"' } as const;
    await on.store.append([{ task, fence, expect: expected, records: [], effects: [mark] }]);
    const { status, body } = await on.ops<Acted>("/v1/acts/resume", { agent, taskId });
    expect([status, body.task?.taskId, body.continues]).toEqual([200, "next", taskId]);
  });
});

describe("retry a step", () => {
  it("repeats one step of a waiting task, and no other step", async () => {
    const done: string[] = [];
    const on = serve(async function* (turn) {
      yield turn.working("On it");
      for (const name of ["a\n", "book ä".repeat(20), "pay"]) {
        await turn.step(name, () => {
          done.push(name);
          return "x".repeat(15_000);
        });
      }
      yield* turn.waitFor("paid");
      yield turn.completed("Done");
    });
    const taskId = await on.send("Go");
    await waitsFor(on, taskId, "event");
    const shown = await on.ops<{ steps: readonly { name: string; state: string }[] }>(
      `/v1/task?agent=%2F&taskId=${taskId}`,
    );
    expect(shown.body.steps.map(({ name, state }) => [name, state])).toEqual([
      ["a\n", "done"],
      ["book ä".repeat(20), "done"],
      ["pay", "done"],
    ]);
    const retried = await on.ops<Acted>("/v1/acts/retry-step", { agent, taskId, step: "book ä".repeat(20) });
    expect(retried.status).toBe(200);
    await until(() => done.length === 4);
    await waitsFor(on, taskId, "event");
    expect(done.slice(3)).toEqual(["book ä".repeat(20)]);
    await on.handler.signal(taskId, "paid");
    await until(async () => (await on.stateOf(taskId)) === "TASK_STATE_COMPLETED");
    expect(done).toHaveLength(4);
  });

  it("rejects a running task", async () => {
    const hold = gate();
    const on = serve(async function* (turn) {
      yield turn.working("On it");
      await turn.step("slow", () => hold.passed);
    });
    const taskId = await on.send("Go");
    await until(async () => {
      const why = await on.why(taskId);
      return why.kind === "running" && why.steps[0] === "slow";
    });
    const { status, body } = await on.ops<Acted>("/v1/acts/retry-step", { agent, taskId, step: "slow" });
    expect([status, body.reason]).toEqual([409, "notPossible"]);
    hold.open();
  });
});

describe("drop a wait", () => {
  it("ends a wait for an event as its timeout does, and a wait for a time", async () => {
    const on = serve(async function* (turn) {
      yield turn.working("On it");
      const event = yield* turn.waitFor("paid");
      yield turn.working(`event ${JSON.stringify(event)}`, { keep: true });
      yield* turn.sleep(3_600_000);
      yield turn.completed("Done");
    });
    const taskId = await on.send("Go");
    await waitsFor(on, taskId, "event");
    const why = await on.why(taskId);
    expect(why).toMatchObject({
      event: "paid",
      text: 'The task waits for the event "paid", which the application signals with signal(). Dropping the wait ends it like a timeout',
    });
    const wait = why.kind === "event" ? why.wait : "";
    expect(why.help).toContain("parley ops drop-wait");
    expect((await on.ops("/v1/acts/drop-wait", { agent, taskId, wait })).status).toBe(200);
    await waitsFor(on, taskId, "time");
    expect((await on.ops("/v1/acts/drop-wait", { agent, taskId, wait: "nothing" })).status).toBe(409);
    const sleeps = await on.why(taskId);
    const second = sleeps.kind === "time" ? sleeps.wait : "";
    expect((await on.ops("/v1/acts/drop-wait", { agent, taskId, wait: second })).status).toBe(200);
    await until(async () => (await on.stateOf(taskId)) === "TASK_STATE_COMPLETED");
    const task = (await on.store.load({ agent }, taskId, { artifacts: false }))?.task;
    expect(task?.history?.map(({ parts }) => parts[0]?.text)).toContain("event undefined");
  });
});

describe("pause and resume an agent", () => {
  it("accepts messages and lets them wait, with the reason, until the pause ends", async () => {
    const begun: string[] = [];
    const on = serve(async function* (turn) {
      begun.push(turn.text);
      yield turn.inputRequired("More?");
    });
    const first = await on.send("before");
    await waitsFor(on, first, "input");
    const paused = await on.ops("/v1/acts/pause", { agent, reason: "bad prompt" });
    expect(paused.status).toBe(200);
    expect((await on.ops("/v1/acts/pause", { agent })).status).toBe(409);
    const second = await on.send("new");
    await on.send("answer", { taskId: first });
    for (const each of [first, second]) {
      expect(await on.why(each)).toMatchObject({
        kind: "agentPaused",
        reason: "bad prompt",
        help: "parley ops unpause /",
      });
      expect(await on.stateOf(each)).toBe("TASK_STATE_SUBMITTED");
    }
    const { body } = await on.ops<{ agents: readonly { agent: string }[] }>("/v1/paused");
    expect(body.agents.map((each) => each.agent)).toEqual([agent]);
    await on.handler.wake();
    expect(begun).toEqual(["before"]);
    expect((await on.ops("/v1/acts/unpause", { agent })).status).toBe(200);
    await until(() => begun.length === 3);
    expect((await on.ops("/v1/acts/unpause", { agent })).status).toBe(409);
    expect((await actsOf(on)).map(({ act, outcome }) => `${act} ${outcome}`)).toEqual([
      "unpause refused",
      "unpause done",
      "pause refused",
      "pause done",
    ]);
  });

  it("rejects an agent that no node serves, with the served ones, unless it has tasks", async () => {
    const on = serve(async function* (turn) {
      yield turn.completed("Done");
    });
    const refused = await on.ops("/v1/acts/pause", { agent: "/typo" });
    const message = "No node serves agent /typo, and it has no tasks. Served agents: /";
    expect(refused).toMatchObject({ status: 409, body: { ok: false, reason: "notPossible", message } });
    expect((await actsOf(on))[0]).toMatchObject({ act: "pause", outcome: "refused", agent: "/typo", after: message });
    expect((await on.ops("/v1/paused")).body).toEqual({ agents: [] });
    const state = "TASK_STATE_SUBMITTED";
    const json = JSON.stringify({ id: "t", contextId: "c", status: { state }, history: [] });
    const record = { kind: "task", state, json, time: 1, actor: "user", turn: 1, attempt: 1 } as const;
    const task = { agent: "/crashed", owner: "o", taskId: "t" };
    await on.store.append([{ task, create: { contextId: "c" }, records: [record] }]);
    expect((await on.ops("/v1/acts/pause", { agent: "/crashed" })).status).toBe(200);
  });

  it("does not wake a waiting task of a paused agent, and keeps its event", async () => {
    const on = serve(async function* (turn) {
      yield turn.working("On it");
      const event = yield* turn.waitFor("paid");
      yield turn.completed(`Got ${JSON.stringify(event)}`);
    });
    const taskId = await on.send("Go");
    await waitsFor(on, taskId, "event");
    await on.ops("/v1/acts/pause", { agent });
    await on.handler.signal(taskId, "paid", "7");
    await on.handler.wake();
    expect((await on.why(taskId)).kind).toBe("agentPaused");
    await on.ops("/v1/acts/unpause", { agent });
    await until(async () => (await on.stateOf(taskId)) === "TASK_STATE_COMPLETED");
  });
});

describe("drain a node", () => {
  it("starts no turns and fails the readiness probe, and starts turns again after undrain", async () => {
    const on = serve(
      async function* (turn) {
        yield turn.completed("Done");
      },
      { health: true },
    );
    const probe = async () => (await on.handler.fetch(new Request("http://127.0.0.1:4000/readyz"))).status;
    expect(await probe()).toBe(200);
    const { body } = await on.ops<{ nodes: readonly { name: string; self: boolean; draining: boolean }[] }>(
      "/v1/nodes",
    );
    const node = body.nodes.find(({ self }) => self)?.name ?? "";
    await on.ops("/v1/acts/drain", { node, reason: "new kernel" });
    expect(await probe()).toBe(503);
    const taskId = await on.send("Go");
    expect((await on.why(taskId)).kind).toBe("queued");
    await on.ops("/v1/acts/undrain", { node });
    await until(async () => (await on.stateOf(taskId)) === "TASK_STATE_COMPLETED");
    expect(await probe()).toBe(200);
  });
});
