import { describe, expect, it, onTestFinished } from "vitest";
import { gate, serve, until, type Served } from "../../packages/server/test/operate/support.ts";
import type { TaskList } from "../../packages/server/src/operate/port.ts";
import { placeOfTest, stores } from "./stores.ts";

/*
 * Tests operators on each store: pages of runs, and messages that wait because the agent is paused or the node drains, even during a turn.
 */

const agent = "/";

describe.each(stores)("a turn that runs, on %s", (name) => {
  /** Starts a server whose agent records each message that it answers, and waits during the first message. */
  async function server() {
    const store = await (await placeOfTest(name)).open();
    onTestFinished(() => store.close());
    const hold = gate();
    const begun: string[] = [];
    const on = serve(
      async function* (turn) {
        begun.push(turn.text);
        yield turn.working(`Working on ${turn.text}`);
        if (turn.text === "first") {
          yield turn.saveCheckpoint({ of: "first" });
          await hold.passed;
        }
        expect(turn.text === "first" ? undefined : turn.checkpoint).toBeUndefined();
        if (turn.text === "last") yield turn.completed("Done");
        else yield turn.inputRequired("More?");
      },
      { store },
    );
    const taskId = await on.send("first");
    await until(() => begun.length === 1);
    return { on, taskId, hold, begun };
  }

  it("ends while its agent is paused, and the messages that came meanwhile wait until the pause ends", async () => {
    const { on, taskId, hold, begun } = await server();
    expect((await on.ops("/v1/acts/pause", { agent, reason: "bad prompt" })).status).toBe(200);
    await on.send("second", { taskId });
    await on.send("last", { taskId });
    expect((await on.why(taskId)).kind).toBe("running");
    hold.open();
    await until(async () => (await on.why(taskId)).kind === "agentPaused");
    expect(await on.stateOf(taskId)).toBe("TASK_STATE_SUBMITTED");
    await on.handler.wake();
    expect(begun).toEqual(["first"]);
    expect((await on.ops("/v1/acts/unpause", { agent })).status).toBe(200);
    await until(async () => (await on.stateOf(taskId)) === "TASK_STATE_COMPLETED");
    expect(begun).toEqual(["first", "second", "last"]);
    const { records = [] } = (await on.store.read({ agent }, taskId, { after: 0, limit: 100 })) ?? {};
    const states = records.flatMap(({ state = "" }) => state.replace("TASK_STATE_", "") || []);
    expect(states.join(" ")).toMatch(/^SUBMITTED WORKING INPUT_REQUIRED SUBMITTED WORKING .*COMPLETED$/);
  });

  it("is the last one of its task on a node that drains, and the next one waits for another node", async () => {
    const { on, taskId, hold, begun } = await server();
    const node = await nodeOf(on);
    await on.ops("/v1/acts/drain", { node });
    await on.send("last", { taskId });
    hold.open();
    await until(async () => (await on.why(taskId)).kind === "queued");
    expect(begun).toEqual(["first"]);
    await on.ops("/v1/acts/undrain", { node });
    await until(async () => (await on.stateOf(taskId)) === "TASK_STATE_COMPLETED");
    expect(begun).toEqual(["first", "last"]);
  });

  it("can be canceled while its next message waits", async () => {
    const { on, taskId, hold, begun } = await server();
    await on.ops("/v1/acts/pause", { agent });
    await on.send("last", { taskId });
    hold.open();
    await until(async () => (await on.why(taskId)).kind === "agentPaused");
    expect((await on.ops("/v1/acts/cancel", { agent, taskId })).status).toBe(200);
    await on.ops("/v1/acts/unpause", { agent });
    await on.handler.wake();
    expect([begun, await on.stateOf(taskId)]).toEqual([["first"], "TASK_STATE_CANCELED"]);
  });
});

describe.each(stores)("runs of a node, and suspended ones, on %s", (name) => {
  it("are listed in pages that are full, unless it is the last one", async () => {
    const store = await (await placeOfTest(name)).open();
    onTestFinished(() => store.close());
    const on = serve(
      async function* (turn) {
        yield turn.completed("Done");
      },
      { store },
    );
    await on.ops("/v1/acts/pause", { agent });
    // Every tenth task is suspended, and node n holds every third task. A single scan does not read this many tasks.
    const runs = 600;
    const state = "TASK_STATE_WORKING";
    for (let from = 0; from < runs; from += 100) {
      await store.append(
        Array.from({ length: 100 }, (_, n) => {
          const at = from + n;
          const json = JSON.stringify({ id: `t${at}`, contextId: "c", status: { state }, history: [] });
          const suspended = at % 10 === 0 ? ({ suspended: true } as const) : {};
          const lease = { effect: "lease", op: "acquire", holder: at % 3 === 0 ? "n" : "m", now: 1, until: 2 } as const;
          return {
            task: { agent, owner: at % 2 === 0 ? "even" : "odd", taskId: `t${at}` },
            create: { contextId: "c" },
            records: [{ kind: "task", state, json, time: 1, actor: "user", turn: 1, attempt: 1 }],
            effects: [lease, { effect: "run", run: { turn: 1, attempt: 1, input: 1, ...suspended } }],
          };
        }),
      );
    }
    const all = Array.from({ length: runs }, (_, at) => at);
    const wanted: readonly (readonly [query: string, fits: (at: number) => boolean])[] = [
      ["node=n", (at) => at % 3 === 0],
      ["suspended=true", (at) => at % 10 === 0],
      ["node=n&suspended=true", (at) => at % 30 === 0],
      ["node=m&owner=odd", (at) => at % 3 !== 0 && at % 2 === 1],
      ["suspended=true&owner=odd", () => false],
    ];
    for (const [query, fits] of wanted) {
      for (const limit of [7, 60, 500]) {
        const pages = await pagesOf(on, `${query}&limit=${limit}`);
        const found = pages.flat();
        expect([query, found.toSorted(), new Set(found).size]).toEqual([
          query,
          all
            .filter(fits)
            .map((at) => `t${at}`)
            .toSorted(),
          found.length,
        ]);
        for (const page of pages.slice(0, -1)) expect(page).toHaveLength(limit);
      }
    }
  });
});

/** Returns the ids of the tasks on each page. */
async function pagesOf({ ops }: Served, query: string): Promise<readonly (readonly string[])[]> {
  const pages: (readonly string[])[] = [];
  for (let next = ""; ;) {
    const { body } = await ops<TaskList>(`/v1/tasks?${query}${next && `&cursor=${next}`}`);
    pages.push(body.tasks.map(({ taskId }) => taskId));
    if (body.next === undefined) return pages;
    next = body.next;
  }
}

async function nodeOf({ ops }: Served): Promise<string> {
  const { body } = await ops<{ readonly nodes: readonly { readonly name: string; readonly self: boolean }[] }>(
    "/v1/nodes",
  );
  return body.nodes.find(({ self }) => self)?.name ?? "";
}
