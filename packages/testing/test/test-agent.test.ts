import { memoryStore } from "@parley/server/internal/store/index";
import type { Client } from "@parley/a2a/internal/client/index";
import { defineAgent, type AgentDefinition } from "@parley/server/internal/agent/index";
import { A2AError, type Task } from "@parley/a2a/internal/model/index";
import { testAgent, type TestAgent, type TestAgentOptions } from "../src/index.ts";
import { describe, expect, it, onTestFinished } from "vitest";

const card = { name: "Test", description: "Is tested.", version: "1.0.0", skills: [], defaultInputModes: ["*"] };

async function given(
  definition: Partial<AgentDefinition> & Pick<AgentDefinition, "onMessage">,
  options?: TestAgentOptions,
): Promise<TestAgent> {
  const agent = await testAgent(defineAgent({ ...card, ...definition }), options);
  onTestFinished(() => agent.close());
  return agent;
}

function after(clock: { after(ms: number, run: () => void): unknown }, ms: number): Promise<void> {
  return new Promise((resolve) => clock.after(ms, resolve));
}

/** Counts to `to`, one number a minute, with a checkpoint for each. `calls` records its side effects. */
function counter(calls: number[], ended: string[] = []): Partial<AgentDefinition> & Pick<AgentDefinition, "onMessage"> {
  return {
    resumable: true,
    async *onMessage(turn) {
      try {
        for (let n = ((turn.checkpoint as number | undefined) ?? 0) + 1; n <= 5; n += 1) {
          calls.push(n);
          yield [turn.artifact({ artifactId: `n-${n}`, parts: [{ text: String(n) }] }), turn.saveCheckpoint(n)];
          await after(turn.clock, 60_000);
        }
      } finally {
        ended.push(`attempt ${turn.attempt}`);
      }
    },
  };
}

function texts(task: Task | undefined): readonly (string | undefined)[] {
  return (task?.artifacts ?? []).map(({ parts }) => parts[0]?.text);
}

const immediately = { configuration: { returnImmediately: true } };

describe("testAgent", () => {
  it("answers by the real client and the real server: direct replies, tasks, streams, rejections (A2A 1.0 §3.1)", async () => {
    const { client } = await given({
      async *onMessage(turn) {
        if (turn.text === "") return turn.reply("Say something.");
        yield turn.working("Thinking");
        return turn.completed(turn.text);
      },
    });
    expect(client.card.capabilities.streaming).toBe(true);
    const { message } = await client.sendMessage({ message: { parts: [{ data: 1 }] } });
    expect(message?.parts).toEqual([{ text: "Say something." }]);
    const states: (string | undefined)[] = [];
    for await (const { statusUpdate } of client.sendStreamingMessage("Hello")) states.push(statusUpdate?.status.state);
    expect(states).toContain("TASK_STATE_COMPLETED");
    await expect(client.getTask("nobody")).rejects.toMatchObject({ code: "TaskNotFound" });
    await expect(client.sendMessage({ message: { parts: [] } })).rejects.toMatchObject({ code: "InvalidParams" });
  });

  it("sends JSON: values such as undefined and NaN do not arrive", async () => {
    let seen: unknown;
    const { client } = await given({
      onMessage(turn) {
        seen = turn.message.parts[0]?.data;
        return turn.reply("Seen");
      },
    });
    await client.sendMessage({ message: { parts: [{ data: { gone: undefined, nan: NaN } as never }] } });
    expect(seen).toEqual({ nan: null });
  });

  it("stands still until it is advanced, so no time limit ends a slow test", async () => {
    const { client, clock } = await given({
      idleTimeout: 1_000,
      async *onMessage(turn) {
        yield turn.working();
        await new Promise((resolve) => turn.signal.addEventListener("abort", resolve));
      },
    });
    const { task } = await client.sendMessage({ message: "Go", ...immediately });
    await clock.advance(500);
    expect((await client.getTask(task!)).status.state).toBe("TASK_STATE_WORKING");
    await clock.advance(5_000);
    expect((await client.getTask(task!)).status.state).toBe("TASK_STATE_FAILED");
  });

  it("moves its clock only forwards, by a number", async () => {
    const { clock } = await given({ onMessage: (turn) => turn.reply("Hi") });
    const before = clock.elapsed();
    for (const wrong of [Number.NaN, Infinity, -1, "5" as unknown as number]) {
      await expect(clock.advance(wrong)).rejects.toThrow(TypeError);
    }
    expect(clock.elapsed()).toBe(before);
  });

  it("moves its clock in steps: an agent that yields each minute runs for an hour, and keeps its lease", async () => {
    const { client, clock, problems } = await given({
      async *onMessage(turn) {
        for (let n = 0; n < 50; n += 1) {
          yield turn.working(String(n));
          await after(turn.clock, 60_000);
        }
      },
    });
    const { task } = await client.sendMessage({ message: "Go", ...immediately });
    await clock.advance(59 * 60_000);
    expect((await client.getTask(task!)).status.state).toBe("TASK_STATE_COMPLETED");
    expect(problems).toEqual([]);
  });

  it("keeps a stream of the client through any time", async () => {
    const { client, clock } = await given({
      async *onMessage(turn) {
        yield turn.working("begun");
        await after(turn.clock, 4 * 60_000);
        yield turn.artifact({ parts: [{ text: "done" }] });
      },
    });
    const seen: (string | undefined)[] = [];
    const stream = client.sendStreamingMessage("Go");
    for await (const { artifactUpdate, statusUpdate } of stream) {
      const { message } = statusUpdate?.status ?? {};
      const said = message?.parts[0]?.text ?? artifactUpdate?.artifact.parts[0]?.text;
      if (said !== undefined) seen.push(said);
      if (said === "begun") await clock.advance(10 * 60_000);
    }
    expect(seen).toEqual(["begun", "done"]);
  });

  it("waits for declared work when its clock is moved", async () => {
    const { client, clock } = await given({
      async *onMessage(turn) {
        yield turn.working();
        await clock.track(new Promise((resolve) => setTimeout(resolve, 30)));
        yield turn.artifact({ parts: [{ text: "real" }] });
      },
    });
    const { task } = await client.sendMessage({ message: "Go", ...immediately });
    await clock.advance(1);
    expect(texts(await client.getTask(task!))).toEqual(["real"]);
  });

  it("advances until a promise settles, by no more than its agents wait for", async () => {
    const { client, clock } = await given({
      idleTimeout: 60_000,
      async *onMessage(turn) {
        await after(turn.clock, 45_000);
        yield turn.working();
        await after(turn.clock, 45_000);
        await new Promise((resolve) => setTimeout(resolve, 30));
        yield turn.completed("done");
      },
    });
    const from = clock.elapsed();
    const { task } = await clock.until(client.sendMessage("Go"));
    expect(task?.status.message?.parts).toEqual([{ text: "done" }]);
    expect(clock.elapsed() - from).toBe(90_000);
    await expect(clock.until(client.getTask("nobody"))).rejects.toMatchObject({ code: "TaskNotFound" });
  });

  it("shares its clock with another agent", async () => {
    const one = await given(counter([]));
    const other = await given(counter([]), { clock: one.clock });
    const { task } = await other.client.sendMessage({ message: "Go", ...immediately });
    await one.clock.advance(10 * 60_000);
    expect((await other.client.getTask(task!)).status.state).toBe("TASK_STATE_COMPLETED");
  });
});

describe("testAgent().crash()", () => {
  it("ends the process as SIGKILL does, and restart() continues at the checkpoint: nothing lost, nothing twice", async () => {
    const calls: number[] = [];
    const ended: string[] = [];
    const { client, clock, crash, restart } = await given(counter(calls, ended));
    const seen: (string | undefined)[] = [];
    const finished = (async () => {
      for await (const { artifactUpdate } of client.sendStreamingMessage("Go"))
        if (artifactUpdate !== undefined) seen.push(artifactUpdate.artifact.parts[0]?.text);
    })();
    await clock.advance(60_000);
    await crash();
    expect(calls).toEqual([1, 2]);
    await clock.advance(60 * 60_000);
    expect(calls).toEqual([1, 2]);
    expect(ended).toEqual([]);
    await restart();
    expect(calls).toEqual([1, 2, 3]);
    await clock.advance(60 * 60_000);
    await finished;
    expect(seen).toEqual(["1", "2", "3", "4", "5"]);
    expect(calls).toEqual([1, 2, 3, 4, 5]);
    expect(ended).toEqual(["attempt 2"]);
  });

  it("rejects connections until restart(), and breaks waiting ones", async () => {
    const { client, crash, restart, connect } = await given({
      async *onMessage(turn) {
        yield turn.working();
        await new Promise(() => undefined);
      },
    });
    const hasty = await connect({ retry: false, reconnect: false });
    const waiting = hasty.sendMessage("Go").catch((error: unknown) => error);
    await expect.poll(async () => (await client.listTasks()).tasks.length).toBe(1);
    await crash();
    expect(await waiting).toMatchObject({ code: "ConnectionFailed" });
    await expect(hasty.listTasks()).rejects.toMatchObject({ code: "ConnectionFailed" });
    await expect(crash()).rejects.toThrow("is not running");
    await restart();
    const { tasks } = await client.listTasks();
    expect(tasks.map(({ status }) => status.state)).toEqual(["TASK_STATE_FAILED"]);
    expect(tasks[0]?.status.message?.parts[0]?.text).toContain("interrupted");
  });

  it("a killed process loses unstored work and stores nothing more", async () => {
    let goOn = (): void => undefined;
    const { client, crash, restart, problems } = await given({
      resumable: true,
      async *onMessage(turn) {
        yield turn.artifact({ artifactId: "first", parts: [{ text: `attempt ${turn.attempt}` }] });
        if (turn.attempt === 1) await new Promise<void>((resolve) => (goOn = resolve));
        yield turn.artifact({ artifactId: "second", parts: [{ text: `attempt ${turn.attempt}` }] });
        throw new Error("reached the end");
      },
    });
    const { task } = await client.sendMessage({ message: "Go", ...immediately });
    await crash();
    goOn();
    await restart();
    const after = await client.waitFor(task!);
    expect(texts(after)).toContain("attempt 2");
    expect(after.artifacts?.find(({ artifactId }) => artifactId === "second")?.parts).toEqual([{ text: "attempt 2" }]);
    expect(problems.join("\n").match(/Error: reached the end/g)).toBe(null);
  });

  it("survives several crashes with the store of the test", async () => {
    const store = memoryStore();
    const calls: number[] = [];
    const { client, clock, crash, restart } = await given(counter(calls), { store });
    const { task } = await client.sendMessage({ message: "Go", ...immediately });
    for (let kill = 0; kill < 4; kill += 1) {
      await clock.advance(60_000);
      await crash();
      await restart();
    }
    await clock.advance(10 * 60_000);
    const ended = await client.getTask(task!);
    expect(ended.status.state).toBe("TASK_STATE_COMPLETED");
    expect(texts(ended)).toEqual(["1", "2", "3", "4", "5"]);
    expect(calls.toSorted((one, other) => one - other)).toEqual(calls);
  });

  it("restarts gracefully without a crash, even with another version of the agent", async () => {
    const calls: number[] = [];
    const kinds: (string | undefined)[] = [];
    const { client, clock, restart } = await given({
      ...counter(calls),
      async *onMessage(turn) {
        turn.signal.addEventListener("abort", () => kinds.push(turn.signal.reason?.kind));
        yield turn.working();
        await after(turn.clock, 60_000);
      },
    });
    const { task } = await client.sendMessage({ message: "Go", ...immediately });
    const next = defineAgent({
      ...card,
      resumable: true,
      onMessage: (turn) => turn.completed("by the new version"),
    });
    await restart(next);
    expect(kinds).toEqual(["shutdown"]);
    await clock.advance(60_000);
    expect((await client.getTask(task!)).status.message?.parts).toEqual([{ text: "by the new version" }]);
  });
});

describe("callers and logs of testAgent", () => {
  it("creates clients for different callers, who do not see each other's tasks (A2A 1.0 §13.1)", async () => {
    const { client, as } = await given({
      async *onMessage(turn) {
        yield turn.completed(turn.principal.subject);
      },
    });
    const [ada, bob] = [await as("ada"), await as({ subject: "bob", organization: "acme" })];
    const { task } = await ada.sendMessage("Hello");
    expect(task?.status.message?.parts).toEqual([{ text: "ada" }]);
    expect(await (await as("ada")).getTask(task!)).toMatchObject({ id: task?.id });
    for (const other of [client, bob])
      await expect(other.getTask(task!)).rejects.toMatchObject({ code: "TaskNotFound" });
  });

  it("creates callers with the credentials that the card requires; the given authenticator checks others (A2A 1.0 §7.4)", async () => {
    const demands = [{ schemes: { key: { list: ["read"] } } }];
    const { client, as, connect } = await given(
      {
        securityRequirements: demands,
        skills: [
          {
            id: "pay",
            name: "Pay",
            description: "Pays",
            tags: [],
            securityRequirements: [{ schemes: { key: { list: ["pay"] } } }],
          },
        ],
        onMessage: (turn) => turn.reply(`${turn.principal.subject} ${turn.allows("pay") ? "may pay" : "may not pay"}`),
      },
      {
        authenticator: {
          securitySchemes: { key: { apiKeySecurityScheme: { location: "header", name: "x-key" } } },
          securityRequirements: demands,
          authenticate(request) {
            if (request.header("x-key") === undefined) throw new A2AError("Unauthenticated");
            return { subject: "by-key", schemes: { key: ["read"] } };
          },
        },
      },
    );
    const said = async (by: typeof client) => (await by.sendMessage("Hello")).message?.parts[0]?.text;
    await expect(said(client)).rejects.toMatchObject({ code: "Unauthenticated" });
    expect(await said(await as("ada"))).toBe("ada may pay");
    expect(await said(await as({ subject: "bob", schemes: { key: ["read"] } }))).toBe("bob may not pay");
    await expect(said(await as({ subject: "eve", schemes: {} }))).rejects.toMatchObject({ code: "Unauthenticated" });
    expect(await said(await connect({ headers: { "x-key": "secret-of-ada-0123456789" } }))).toBe("by-key may not pay");
  });

  it("shows why an agent failed, which its client does not see", async () => {
    const agent = await given({
      async *onMessage(turn) {
        yield turn.working();
        throw new TypeError("the price is missing", { cause: new Error("the shop is closed") });
      },
    });
    const { task } = await agent.client.sendMessage("Go");
    expect(task?.status.state).toBe("TASK_STATE_FAILED");
    expect(JSON.stringify(task)).not.toContain("price");
    expect(agent.problems).toHaveLength(1);
    expect(agent.problems[0]).toMatch(
      /^error: [^]*TypeError: the price is missing\n +at [^]*Error: the shop is closed/,
    );
    expect(agent.logs.find(({ level }) => level === "error")?.fields["cause"]).toBeInstanceOf(TypeError);
  });

  it("ends by close(): waiting calls end at once, and a second close changes nothing", async () => {
    const agent = await given({
      async *onMessage(turn) {
        yield turn.working();
        await new Promise(() => undefined);
      },
    });
    const stream = agent.client.sendStreamingMessage("Go")[Symbol.asyncIterator]();
    await stream.next();
    const rest = (async () => {
      while ((await stream.next()).done !== true);
    })();
    await agent.close();
    await rest.catch((error: unknown) => expect(error).toMatchObject({ code: "Aborted" }));
    await agent.close();
    await expect(agent.client.listTasks()).rejects.toMatchObject({ code: "Aborted" });
  });

  it("is closed by `await using`, if the runtime has it", async () => {
    let client: Client | undefined;
    {
      await using agent = await testAgent(defineAgent({ ...card, onMessage: (turn) => turn.reply("Hello") }));
      client = agent.client;
      expect((await client.sendMessage("Hi")).message).toBeDefined();
    }
    await expect(client.sendMessage("Hi")).rejects.toMatchObject({ code: "Aborted" });
  });
});
