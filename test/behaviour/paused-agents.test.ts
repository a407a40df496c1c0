import { describe, expect, it, onTestFinished } from "vitest";
import { gate, serve, until, type Served } from "../../packages/server/test/operate/support.ts";
import { placeOfTest, stores } from "./stores.ts";

/* A paused agent, or a node that drains: messages are accepted and wait, also those that come while a turn of their task runs. */

const agent = "/";

describe.each(stores)("a turn that runs, on %s", (name) => {
  /** A server whose agent notes each message that it answers, and waits within the first one. */
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

async function nodeOf({ ops }: Served): Promise<string> {
  const { body } = await ops<{ readonly nodes: readonly { readonly name: string; readonly self: boolean }[] }>(
    "/v1/nodes",
  );
  return body.nodes.find(({ self }) => self)?.name ?? "";
}
