import { mkdtemp, rm } from "node:fs/promises";
import { join } from "node:path";
import { defineAgent, memoryStore, type Agent, type AgentDefinition, type Store } from "@parley/server";
import { testAgent, type TestAgent, type TestAgentOptions } from "@parley/testing";
import { sqliteStore } from "@parley/sql/sqlite";
import { afterAll, beforeAll, describe, expect, it, onTestFinished } from "vitest";
import { diskFolder } from "../../../../test/temporary.ts";

const card = { name: "Shop", description: "Sells.", version: "1.0.0", skills: [] };

interface Types {
  state: { readonly items: readonly string[] };
  checkpoint: number;
}

type Definition = Partial<AgentDefinition<Types>> & Pick<AgentDefinition<Types>, "onMessage">;

function shop(definition: Definition): Agent {
  return defineAgent<Types>({ ...card, ...definition });
}

/** Adds each message to the cart, until it is told to pay. */
const cart: Definition = {
  async *onMessage(turn) {
    const items = turn.state()?.items ?? [];
    if (turn.text === "pay") return yield turn.completed(items.join(", "));
    turn.setState({ items: [...items, turn.text] });
    yield turn.inputRequired("Anything else?");
    return undefined;
  },
};

let folder = "";
beforeAll(async () => {
  folder = await mkdtemp(join(diskFolder(), "state-"));
});
afterAll(() => rm(folder, { recursive: true, force: true }));
let files = 0;

const stores: Readonly<Record<string, () => Promise<Store>>> = {
  memory: () => Promise.resolve(memoryStore()),
  SQLite: () => sqliteStore({ path: join(folder, `${(files += 1)}.db`) }),
};

describe.each(Object.entries(stores))("the state of a task, in %s", (_, open) => {
  async function given(definition: Definition, options: TestAgentOptions = {}): Promise<TestAgent> {
    const store = await open();
    const agent = await testAgent(shop(definition), { store, ...options });
    onTestFinished(async () => {
      await agent.close();
      await store.close();
    });
    return agent;
  }

  it("is kept between turns for each task of a context, and hidden from clients (A2A 1.0 §4.1.1)", async () => {
    const { client } = await given(cart);
    const one = client.conversation();
    const { task } = await one.send("a private wish");
    const other = client.conversation({ contextId: task?.contextId ?? "" });
    await other.send("tea");
    await one.send("milk");
    expect((await one.send("pay")).task?.status.message?.parts).toEqual([{ text: "a private wish, milk" }]);
    expect((await other.send("pay")).task?.status.message?.parts).toEqual([{ text: "tea" }]);
    expect(JSON.stringify(await client.getTask(task?.id ?? ""))).not.toContain("items");
  });

  it("survives a crash and a restart", async () => {
    const agent = await given(cart);
    const conversation = agent.client.conversation();
    await conversation.send("bread");
    await agent.crash();
    await agent.restart();
    await conversation.send("milk");
    await agent.restart();
    const { task } = await conversation.send("pay");
    expect(task?.status.message?.parts).toEqual([{ text: "bread, milk" }]);
  });

  it("is stored together with the events that follow it: without one, it is lost in a crash", async () => {
    const seen: unknown[] = [];
    const agent = await given({
      resumable: true,
      async *onMessage(turn) {
        seen.push([turn.attempt, turn.checkpoint, turn.state()]);
        const items = turn.state()?.items ?? [];
        if (turn.attempt === 1) {
          turn.setState({ items: ["one"] });
          yield [turn.artifact({ artifactId: "1", parts: [{ text: "1" }] }), turn.saveCheckpoint(1)];
          await turn.flush();
          turn.setState({ items: ["not stored"] });
          await new Promise(() => {});
        }
        yield turn.completed(items.join());
      },
    });
    const { task } = await agent.client.sendMessage({ message: "Go", configuration: { returnImmediately: true } });
    await expect.poll(async () => (await agent.client.getTask(task?.id ?? "")).artifacts?.length).toBe(1);
    await agent.crash();
    await agent.restart();
    const done = await agent.client.waitFor(task?.id ?? "");
    expect(done.status.state).toBe("TASK_STATE_COMPLETED");
    expect(seen[0]).toEqual([1, undefined, undefined]);
    expect(seen[1]).toEqual([2, 1, { items: ["one"] }]);
  });

  it("is deleted with undefined, and read as a copy", async () => {
    const { client } = await given({
      async *onMessage(turn) {
        if (turn.number === 1) {
          const items = ["a"];
          turn.setState({ items });
          items.push("changed later");
          expect(turn.state()).toEqual({ items: ["a"] });
          yield turn.inputRequired("1");
        } else if (turn.number === 2) {
          expect(turn.state()).toEqual({ items: ["a"] });
          turn.setState(undefined);
          expect(turn.state()).toBeUndefined();
          yield turn.inputRequired("2");
        } else yield turn.completed(turn.state() === undefined ? "gone" : "there");
      },
    });
    const conversation = client.conversation();
    await conversation.send("1");
    await conversation.send("2");
    expect((await conversation.send("3")).task?.status).toMatchObject({
      state: "TASK_STATE_COMPLETED",
      message: { parts: [{ text: "gone" }] },
    });
  });

  it("is stored at the end of a turn that yields nothing after it", async () => {
    const { client } = await given({
      async *onMessage(turn) {
        if (turn.number === 2) return yield turn.completed(turn.state()?.items.join());
        yield turn.inputRequired("?");
        turn.setState({ items: ["late"] });
        return undefined;
      },
    });
    const conversation = client.conversation();
    await conversation.send("1");
    expect((await conversation.send("2")).task?.status.message?.parts).toEqual([{ text: "late" }]);
  });

  it("is passed to the next turn of the same run, for a message that arrived meanwhile", async () => {
    const { client } = await given({
      async *onMessage(turn) {
        if (turn.number === 2) return yield turn.completed(turn.state()?.items.join());
        turn.setState({ items: ["first"] });
        yield turn.working("…");
        await turn.flush();
        await client.sendMessage({
          message: { parts: [{ text: "more" }], taskId: turn.taskId, contextId: turn.contextId },
          configuration: { returnImmediately: true },
        });
        return undefined;
      },
    });
    const { task } = await client.sendMessage("go");
    expect((await client.waitFor(task?.id ?? "")).status.message?.parts).toEqual([{ text: "first" }]);
  });

  it("is limited by limits.stateBytes, to the byte, and is JSON", async () => {
    const agent = await given(
      {
        async *onMessage(turn) {
          turn.setState({ items: ["x".repeat(Number(turn.text) - '{"items":[""]}'.length)] });
          yield turn.completed("stored");
        },
      },
      { limits: { stateBytes: 1000 } },
    );
    expect((await agent.client.sendMessage("1000")).task?.status.state).toBe("TASK_STATE_COMPLETED");
    expect((await agent.client.sendMessage("1001")).task?.status.state).toBe("TASK_STATE_FAILED");
    expect(agent.problems.join()).toContain(
      "turn.setState(): the value takes 1001 bytes, and limits.stateBytes is 1000",
    );
    const circle: unknown[] = [];
    circle.push(circle);
    const second = await given({
      async *onMessage(turn) {
        turn.setState({ items: circle as string[] });
        yield turn.completed("stored");
      },
    });
    expect((await second.client.sendMessage("x")).task?.status.state).toBe("TASK_STATE_FAILED");
    expect(second.problems.join()).toContain("turn.setState(): it is not JSON");
  });

  it("cannot be set with a direct reply, which has no task: the log says so", async () => {
    const agent = await given({
      onMessage(turn) {
        if (turn.text === "clear") turn.setState(undefined);
        else turn.setState({ items: [] });
        return turn.reply("Hello");
      },
    });
    expect((await agent.client.sendMessage("clear")).message?.parts).toEqual([{ text: "Hello" }]);
    expect((await agent.client.sendMessage("Hi")).task?.status.state).toBe("TASK_STATE_FAILED");
    expect(agent.problems.join()).toContain("a direct reply has no task to store a state");
  });

  it("is not written by a run that has lost its lease", async () => {
    let goOn = (): void => {};
    let reason: string | undefined;
    const agent = await given({
      async *onMessage(turn) {
        turn.setState({ items: ["mine"] });
        yield turn.working("…");
        await turn.flush();
        await new Promise<void>((resolve) => (goOn = resolve));
        turn.setState({ items: ["late"] });
        try {
          yield turn.working("late");
          await turn.flush();
        } finally {
          reason = turn.signal.reason?.kind;
        }
      },
    });
    const { task } = await agent.client.sendMessage({
      message: "go",
      configuration: { returnImmediately: true },
    });
    const taskId = task?.id ?? "";
    const [run] = await agent.store.stranded({ now: Number.MAX_SAFE_INTEGER, agents: [], limit: 1 });
    const owner = { agent: run?.agent ?? "", owner: JSON.stringify([null, "anonymous"]) };
    await expect.poll(async () => (await agent.store.head(owner, taskId))?.taskState).toBe('{"items":["mine"]}');
    const taken = { effect: "lease", op: "revoke" } as const;
    expect(await agent.store.append([{ task: { ...owner, taskId }, records: [], effects: [taken] }])).toMatchObject([
      { ok: true },
    ]);
    goOn();
    await expect.poll(() => reason).toBe("leaseLost");
    expect((await agent.store.head(owner, taskId))?.taskState).toBe('{"items":["mine"]}');
  });

  it("is deleted with its task", async () => {
    const agent = await given(cart, { retention: { terminal: 1000, interval: 1000 } });
    const conversation = agent.client.conversation();
    const { task } = await conversation.send("tea");
    await conversation.send("pay");
    await agent.clock.advance(10_000);
    await expect
      .poll(() => agent.client.getTask(task?.id ?? "").then(String, ({ code }: { code: string }) => code))
      .toBe("TaskNotFound");
  });
});
