import { describe, expect, it } from "vitest";
import type { OperatedTask, ShownTask, TaskLog } from "../../src/operate/port.ts";
import { gate, serve, until, type Served } from "./support.ts";

/** Tests a task's history for operators: its log, takeovers, steps, waits and delegations. */

const agent = "/";

const logOf = async ({ ops }: Served, taskId: string, more = ""): Promise<TaskLog> =>
  (await ops<TaskLog>(`/v1/log?agent=%2F&taskId=${taskId}${more}`)).body;
const shownOf = async ({ ops }: Served, taskId: string): Promise<ShownTask> =>
  (await ops<ShownTask>(`/v1/task?agent=%2F&taskId=${taskId}`)).body;
const isOver = (on: Served, taskId: string): Promise<void> => until(async () => (await on.why(taskId)).kind === "done");

describe("the log", () => {
  it("is read in pages, oldest record first, without content", async () => {
    const on = serve(async function* (turn) {
      yield turn.artifact({ artifactId: "report", parts: [{ text: "secret text" }], open: true });
      for (let n = 0; n < 10; n += 1) yield turn.append("report", [{ text: "more" }], { last: n === 9 });
      yield turn.completed("secret end");
    });
    const taskId = await on.send("secret question");
    await isOver(on, taskId);
    const whole = await logOf(on, taskId);
    expect(whole.next).toBeUndefined();
    expect(whole.entries.map(({ seq }) => seq)).toEqual(whole.entries.map((_, at) => at + 1));
    expect(whole.entries[0]).toMatchObject({ kind: "task", actor: "user", turn: 1, attempt: 1 });
    expect(whole.entries.filter(({ artifactId }) => artifactId === "report")).toHaveLength(11);
    expect(whole.entries.at(-1)).toMatchObject({ kind: "statusUpdate", state: "TASK_STATE_COMPLETED" });
    expect(JSON.stringify(whole)).not.toContain("secret");
    const pages: number[] = [];
    for (let after: number | undefined = 0; after !== undefined;) {
      const page = await logOf(on, taskId, `&limit=4${after === 0 ? "" : `&after=${after}`}`);
      pages.push(...page.entries.map(({ seq }) => seq));
      after = page.next;
    }
    expect(pages).toEqual(whole.entries.map(({ seq }) => seq));
    expect((await on.ops(`/v1/log?agent=%2F&taskId=none`)).status).toBe(404);
    expect((await on.ops(`/v1/log?agent=%2F&taskId=${taskId}&limit=5001`)).status).toBe(400);
  });

  it("has pages that end after large records", async () => {
    const on = serve(async function* (turn) {
      for (const name of ["a", "b", "c"])
        yield turn.artifact({ artifactId: name, parts: [{ text: "x".repeat(3 << 20) }] });
    });
    const taskId = await on.send("Go");
    await isOver(on, taskId);
    const first = await logOf(on, taskId);
    expect(first.next).toBe(first.entries.at(-1)?.seq);
    expect(first.next).toBeLessThan(first.task.seq);
  });
});

describe("a task", () => {
  it("has the times of its steps and waits", async () => {
    const hold = gate();
    const on = serve(async function* (turn) {
      await turn.step("look", () => "found");
      yield* turn.waitFor("paid");
      await turn.step("ship", () => hold.passed);
      yield turn.completed("Done");
    });
    const began = Date.now();
    const taskId = await on.send("Go");
    await until(async () => (await on.why(taskId)).kind === "event");
    const waiting = await shownOf(on, taskId);
    const look = waiting.steps.find(({ name }) => name === "look");
    const [begun = 0, ended = 0] = [look?.begun, look?.ended].map((time) => Date.parse(time ?? ""));
    expect(begun).toBeGreaterThanOrEqual(began);
    expect(ended).toBeGreaterThanOrEqual(begun);
    const { wait, since } = waiting.why.kind === "event" ? waiting.why : {};
    expect(Date.parse(since ?? "")).toBeGreaterThanOrEqual(ended);
    await on.ops("/v1/acts/drop-wait", { agent, taskId, wait });
    await until(async () => (await shownOf(on, taskId)).steps.some(({ name }) => name === "ship"));
    const shipping = await shownOf(on, taskId);
    expect(shipping.waited).toEqual([{ name: wait, begun: since, ended: expect.any(String) as string }]);
    const ship = shipping.steps.find(({ name }) => name === "ship");
    expect(ship).toEqual({ name: "ship", scope: "turn", state: "begun", begun: expect.any(String) as string });
    hold.open();
    await isOver(on, taskId);
    expect((await shownOf(on, taskId)).steps.map(({ name, state }) => [name, state])).toEqual([
      ["look", "done"],
      ["ship", "done"],
    ]);
  });

  it("shows the process that lost the run", async () => {
    const completes: Parameters<typeof serve>[0] = async function* (turn) {
      yield turn.completed("Done");
    };
    const on = serve(completes, { lease: { ttl: 500 } });
    await on.ops("/v1/acts/pause", { agent });
    const taskId = await on.send("Go");
    const key = { agent, owner: (await on.store.head({ agent }, taskId))?.task.owner ?? "", taskId };
    const run = { turn: 1, attempt: 1, input: 1 } as const;
    const leave = { effect: "feature", op: "delete", feature: "queue", key: "run" } as const;
    const lease = { effect: "lease", op: "acquire", holder: "node-that-died", now: 1, until: 2 } as const;
    await on.store.append([{ task: key, records: [], effects: [{ effect: "run", run }, leave, lease] }]);
    expect((await shownOf(on, taskId)).takeovers).toEqual([]);
    await on.ops("/v1/acts/unpause", { agent });
    await isOver(on, taskId);
    const [taken, ...more] = (await shownOf(on, taskId)).takeovers;
    expect(more).toEqual([]);
    expect(taken).toMatchObject({ turn: 1, attempt: 2, from: "node-that-died" });
    const { body } = await on.ops<{ readonly nodes: readonly { readonly name: string }[] }>("/v1/nodes");
    expect(body.nodes.map(({ name }) => name)).toContain(taken?.node);
    const log = await logOf(on, taskId);
    expect(log.entries.map(({ attempt }) => attempt)).toEqual([1, 2]);
    const { task }: { readonly task: OperatedTask } = log;
    expect(task.state).toBe("TASK_STATE_COMPLETED");
  });

  it("shows the takeovers of each of its turns", async () => {
    const on = serve(
      async function* (turn) {
        yield turn.number < 2 ? turn.inputRequired("And then?") : turn.completed("Done");
      },
      { lease: { ttl: 500 } },
    );
    let taskId: string | undefined;
    for (let number = 1; number <= 2; number += 1) {
      await on.ops("/v1/acts/pause", { agent });
      const id = (taskId = await on.send("Go", taskId === undefined ? {} : { taskId }));
      const { entries } = await logOf(on, id);
      const input = entries.findLast(({ kind }) => kind === "task" || kind === "message")?.seq ?? 0;
      const key = { agent, owner: (await on.store.head({ agent }, id))?.task.owner ?? "", taskId: id };
      const run = { turn: number, attempt: 1, input };
      const leave = { effect: "feature", op: "delete", feature: "queue", key: "run" } as const;
      const lease = { effect: "lease", op: "acquire", holder: "node-that-died", now: 1, until: 2 } as const;
      await on.store.append([{ task: key, records: [], effects: [{ effect: "run", run }, leave, lease] }]);
      await on.ops("/v1/acts/unpause", { agent });
      await until(async () => (await on.why(id)).kind === (number < 2 ? "input" : "done"));
    }
    const { takeovers } = await shownOf(on, taskId ?? "");
    expect(takeovers.map(({ turn, attempt }) => [turn, attempt])).toEqual([
      [1, 2],
      [2, 2],
    ]);
  });
});
