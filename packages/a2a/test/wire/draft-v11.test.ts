import { describe, expect, onTestFinished, test } from "vitest";
import { collect, connect, type ConnectOptions } from "../../src/client/index.ts";
import { createHandler, type Handler } from "@parley/server/internal/handler";
import { defineAgent } from "@parley/server/internal/agent/index";
import { memoryStore } from "@parley/server/internal/store/index";
import { generationOf, spanOf, timelineOf, type Task } from "../../src/model/index.ts";
import type { Turn } from "../../src/protocol/index.ts";
import { errorOf, soon } from "../client/support.ts";

const publicUrl = "https://agents.example/one";

/** Serves an agent that takes each step on command, and then asks a question. */
function stepping(): { handler: Handler; step: () => void } {
  const later: (() => void)[] = [];
  const steps = [0, 1].map(() => new Promise<void>((resolve) => later.push(resolve)));
  const agent = defineAgent({
    name: "Stepper",
    description: "Takes a step when it may.",
    version: "1.0.0",
    skills: [],
    mayReplyDirectly: false,
    async *onMessage(turn: Turn) {
      if (turn.text === "steps") {
        for (const may of steps) {
          await may;
          yield turn.working();
        }
      }
      yield turn.artifact({ parts: [{ text: "made" }] });
      yield turn.inputRequired("More?");
    },
  });
  const handler = createHandler(agent, { publicUrl, store: memoryStore(), longPoll: 60_000 });
  onTestFinished(() => handler.close({ grace: 0 }));
  return { handler, step: () => later.shift()?.() };
}

function client(handler: Handler, options: ConnectOptions) {
  return connect(publicUrl, { fetch: (url, init) => handler.fetch(new Request(url, init)), ...soon, ...options });
}

/** Creates a task that gets two messages and is then canceled. */
async function canceled(binding: string) {
  const agent = await client(stepping().handler, { binding, version: "1.1" });
  const { task } = await agent.sendMessage("Go");
  const id = task?.id ?? "";
  await agent.sendMessage({ message: { taskId: id, parts: [{ text: "Go on" }] } });
  await agent.cancelTask(id);
  return { agent, id };
}

describe.each(["JSONRPC", "HTTP+JSON"])("the draft of 1.1 over %s", (binding) => {
  test("numbers every event of a task in order, and no message of the user (§3.2.7)", async () => {
    const { handler } = stepping();
    const agent = await client(handler, { binding, version: "1.1" });
    expect(agent.chosen).toMatchObject({ protocolBinding: binding, protocolVersion: "1.1" });
    const generations: (number | undefined)[] = [];
    const stream = agent.sendStreamingMessage("Go", {}, (event) => generations.push(generationOf(event)));
    const { task } = await collect(stream);
    expect(generations).toEqual([1, 2, 3, 4].slice(0, generations.length));
    const id = task?.id ?? "";
    const asked = generationOf(await agent.getTask(id));
    expect(asked).toBe(generations.length);
    const more = await agent.sendMessage({ message: { taskId: id, parts: [{ text: "Go on" }] } });
    // The later changes are the state WORKING, an artifact, and a question.
    expect(generationOf(more.task as Task)).toBe((asked ?? 0) + 3);
    const { tasks } = await agent.listTasks();
    expect(tasks.map(generationOf)).toEqual([(asked ?? 0) + 3]);
    expect(generationOf(await agent.cancelTask(id))).toBe((asked ?? 0) + 4);
  });

  test("continues the numbers of the events in a resumed stream", async () => {
    const { agent, id } = await canceled(binding);
    const all = generationOf(await agent.getTask(id)) ?? 0;
    const seen: (number | undefined)[] = [];
    for await (const event of agent.subscribeToTask(id, { after: 2 })) {
      seen.push(generationOf(event));
    }
    expect(seen).toEqual(Array.from({ length: all - 2 }, (_, at) => at + 3));
  });

  test("answers GetTask when the generation of the task is above currentGeneration (§3.2.7)", async () => {
    const { handler, step } = stepping();
    const agent = await client(handler, { binding, version: "1.1" });
    const { task } = await agent.sendMessage({ message: "steps", configuration: { returnImmediately: true } });
    const id = task?.id ?? "";
    expect(generationOf(await agent.getTask({ id, currentGeneration: 0 }))).toBe(1);
    const held = agent.getTask({ id, currentGeneration: 1 });
    step();
    expect(generationOf(await held)).toBe(2);
    const [again, ended] = [agent.getTask({ id, currentGeneration: 2 }), agent.getTask({ id, currentGeneration: 9 })];
    step();
    expect(generationOf(await again)).toBeGreaterThan(2);
    await agent.cancelTask(id);
    expect((await ended).status.state).toBe("TASK_STATE_CANCELED");
  });

  test("has the timeline of a task: its user's messages and its statuses, in order (§3.2.8)", async () => {
    const { agent, id } = await canceled(binding);
    const read = await agent.getTask(id);
    const entries = (timelineOf(read) ?? []).map(
      ({ message, status }) => message?.parts[0]?.text ?? [status?.state, status?.message?.parts[0]?.text],
    );
    expect(entries.filter((entry) => typeof entry === "string")).toEqual(["Go", "Go on"]);
    expect(entries[0]).toBe("Go");
    expect(entries).toContainEqual(["TASK_STATE_INPUT_REQUIRED", "More?"]);
    expect(entries.at(-1)).toEqual(["TASK_STATE_CANCELED", undefined]);
    // A task without a timeline is otherwise unchanged.
    const plain = await agent.getTask({ id, historyLength: 0 });
    expect(timelineOf(plain)).toBeUndefined();
    expect(read.history?.map(({ messageId }) => messageId)).toHaveLength(4);
    expect(read.status).toEqual(plain.status);
    expect(read.artifacts?.map(({ parts }) => parts)).toEqual(plain.artifacts?.map(({ parts }) => parts));
  });

  test("names the generations between which an artifact grew (§3.2.8)", async () => {
    const agent = defineAgent({
      name: "Writer",
      description: "Writes in chunks.",
      version: "1.0.0",
      skills: [],
      mayReplyDirectly: false,
      async *onMessage(turn: Turn) {
        yield turn.artifact({ artifactId: 'a "quoted" id', parts: [{ text: "one" }], open: true });
        yield turn.artifact({ artifactId: "whole", parts: [{ text: "all" }] });
        yield turn.append('a "quoted" id', [{ text: "two" }], { last: true });
        yield turn.artifact({ artifactId: "growing", parts: [{ text: "some" }], open: true });
        yield turn.inputRequired("More?");
      },
    });
    const handler = createHandler(agent, { publicUrl, store: memoryStore() });
    onTestFinished(() => handler.close({ grace: 0 }));
    const reader = await client(handler, { binding, version: "1.1" });
    const generations = new Map<string, (number | undefined)[]>();
    const stream = reader.sendStreamingMessage("Go", {}, (event) => {
      const id = event.artifactUpdate?.artifact.artifactId;
      if (id !== undefined) generations.set(id, [...(generations.get(id) ?? []), generationOf(event)]);
    });
    const { task } = await collect(stream);
    const read = await reader.getTask(task?.id ?? "");
    const spans = new Map(read.artifacts?.map((artifact) => [artifact.artifactId, spanOf(artifact)]));
    const [begun, ended] = generations.get('a "quoted" id') ?? [];
    expect(spans.get('a "quoted" id')).toEqual({ start: begun, end: ended });
    const [whole] = generations.get("whole") ?? [];
    expect(spans.get("whole")).toEqual({ start: whole, end: whole });
    expect(spans.get("growing")).toEqual({ start: generations.get("growing")?.[0], end: undefined });
  });

  test("leaves out a timeline larger than a page, and reads none that is invalid", async () => {
    const agent = defineAgent({
      name: "Talker",
      description: "Talks.",
      version: "1.0.0",
      skills: [],
      mayReplyDirectly: false,
      async *onMessage(turn: Turn) {
        for (let at = 0; at < 4; at++) yield turn.working("x".repeat(1000));
      },
    });
    const handler = createHandler(agent, { publicUrl, store: memoryStore(), limits: { pageBytes: 4000 } });
    onTestFinished(() => handler.close({ grace: 0 }));
    const reader = await client(handler, { binding, version: "1.1" });
    const { task } = await reader.sendMessage("Go");
    const read = await reader.getTask(task?.id ?? "");
    expect(read.status.state).toBe("TASK_STATE_COMPLETED");
    expect(timelineOf(read)).toBeUndefined();
    expect(generationOf(read)).toBeGreaterThan(4);
    for (const timeline of [{}, "x", [{ message: 5 }], [{ status: {} }], [null]]) {
      expect(timelineOf({ ...read, timeline } as Task)).toBeUndefined();
    }
    for (const startGeneration of [0, -1, "x", 1.5, {}]) {
      expect(spanOf({ artifactId: "a", parts: [], startGeneration } as never).start).toBeUndefined();
    }
  });

  test("rejects a message whose ifGenerationMatch is not the generation of the task, with both numbers (§3.2.2)", async () => {
    const { handler } = stepping();
    const agent = await client(handler, { binding, version: "1.1" });
    const { task } = await agent.sendMessage({ message: "Go", configuration: { ifGenerationMatch: 77 } });
    const id = task?.id ?? "";
    const at = generationOf(task as Task) ?? 0;
    const next = (ifGenerationMatch: number) =>
      agent.sendMessage({
        message: { taskId: id, parts: [{ text: "Go on" }] },
        configuration: { ifGenerationMatch },
      });
    expect(await errorOf(next(at - 1))).toMatchObject({
      code: "TaskGenerationMismatch",
      metadata: { taskId: id, expectedGeneration: String(at - 1), currentGeneration: String(at) },
    });
    expect(generationOf((await next(at)).task as Task)).toBe(at + 3);
    expect(await errorOf(next(at))).toMatchObject({ code: "TaskGenerationMismatch" });
  });

  test("does not change 1.0: no generation, no waiting, no condition", async () => {
    const { handler } = stepping();
    const agent = await client(handler, { binding });
    const { task } = await agent.sendMessage({ message: "Go", configuration: { ifGenerationMatch: 1 } });
    expect(task).not.toHaveProperty("generation");
    const id = task?.id ?? "";
    expect(await agent.getTask({ id, currentGeneration: 99 })).not.toHaveProperty("generation");
    await agent.sendMessage({
      message: { taskId: id, parts: [{ text: "Go on" }] },
      configuration: { ifGenerationMatch: 1 },
    });
  });
});

test("a call of 1.0 ignores the fields of the draft", async () => {
  const { handler } = stepping();
  const post = async (method: string, params: object, version: string): Promise<Record<string, unknown>> => {
    const headers = { "content-type": "application/json", "a2a-version": version };
    const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params });
    return (await handler.fetch(new Request(publicUrl, { method: "POST", headers, body }))).json() as never;
  };
  const message = { messageId: "m", role: "ROLE_USER", parts: [{ text: "Go" }] };
  const { result } = (await post("SendMessage", { message }, "1.0")) as { result: { task: { id: string } } };
  const { id } = result.task;
  expect(await post("GetTask", { id, currentGeneration: "99" }, "1.0")).toMatchObject({ result: { id } });
  const asked = await post("GetTask", { id, currentGeneration: "1" }, "1.1");
  expect(asked).toMatchObject({ result: { id, generation: expect.stringMatching(/^\d+$/) as string } });
  expect(await post("GetTask", { id, currentGeneration: "soon" }, "1.1")).toMatchObject({
    error: { code: -32602, message: expect.stringContaining("currentGeneration") as string },
  });
});

test("no card names the draft", async () => {
  const { handler } = stepping();
  const agent = await client(handler, {});
  expect(agent.card.supportedInterfaces.map(({ protocolVersion }) => protocolVersion)).not.toContain("1.1");
});
