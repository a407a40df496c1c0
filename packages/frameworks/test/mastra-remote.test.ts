import { connect, type Client } from "@parley/a2a";
import { defineAgent, serve, text, type Server } from "@parley/node";
import { memoryStore, silentLogger } from "@parley/server";
import { Agent } from "@mastra/core/agent";
import { afterEach, expect, test } from "vitest";
import { fromMastra, remoteMastraAgent, type MastraAgent } from "../src/mastra/index.ts";
import { gate } from "./gate.ts";
import { calls, says, Scripted } from "./scripted.ts";

const card = { description: "A test", version: "1.0.0", skills: [] };

const servers: Server[] = [];
afterEach(() => Promise.all(servers.splice(0).map((server) => server.close())));

const heard: string[] = [];
const canceled: string[] = [];
const slow = gate();

async function weather(): Promise<string> {
  heard.length = 0;
  const agent = defineAgent({
    ...card,
    name: "Weather",
    description: "Tells the weather",
    mayReplyDirectly: false,
    async *onMessage(turn) {
      heard.push(turn.text);
      if (turn.text === "fail") return yield turn.failed("No weather");
      if (turn.text === "hang") {
        yield turn.working("Waiting");
        await new Promise((resolve) => turn.signal.addEventListener("abort", resolve));
        canceled.push(turn.text);
        return;
      }
      if (turn.text === "slow") await slow.opened;
      if (turn.number === 1 && turn.text === "Weather?") return yield turn.inputRequired("Where?");
      yield turn.working("Looking");
      yield turn.artifact({ artifactId: "a", parts: [text("Sunny in ")], open: true });
      yield turn.append("a", [text(turn.text)], { last: true });
    },
  });
  const server = await serve(agent, { port: 0, logger: false, store: memoryStore() });
  servers.push(server);
  return server.url;
}

async function chunksOf(stream: AsyncIterable<object>): Promise<string[]> {
  const found: string[] = [];
  for await (const chunk of stream) {
    const { type, payload } = chunk as { type: string; payload: { text?: string } };
    found.push(payload.text === undefined ? type : `${type} ${payload.text}`);
  }
  return found;
}

test("streams text and progress, and is suspended by a question, which any process can answer", async () => {
  const url = await weather();
  const asked = await remoteMastraAgent(await connect(url)).generate("Weather?");
  expect(asked).toMatchObject({ finishReason: "suspended", suspendPayload: { question: "Where?" } });
  expect(JSON.parse(String(asked.resumeSchema))).toMatchObject({ properties: { answer: { type: "string" } } });
  const result = await remoteMastraAgent(url).resumeStream({ answer: "Basel" }, { runId: asked.runId });
  expect(await chunksOf(result.fullStream as AsyncIterable<object>)).toEqual([
    "reasoning-start",
    "reasoning-delta Looking",
    "reasoning-end",
    "text-start",
    "text-delta Sunny in ",
    "text-end",
    "text-start",
    "text-delta Basel",
    "text-end",
    "finish",
  ]);
  expect([await result.text, await result.finishReason]).toEqual(["Sunny in Basel", "stop"]);
  expect(heard).toEqual(["Weather?", "Basel"]);
});

test("fails if the remote task or its connection fails", async () => {
  const agent = remoteMastraAgent(await weather());
  await expect(agent.generate("fail")).rejects.toThrow("The remote task has failed: No weather");
  const run = await agent.stream("fail");
  expect(await chunksOf(run.fullStream as AsyncIterable<object>)).toContain("error");
  expect(run.error).toMatchObject({ message: "The remote task has failed: No weather" });
  await expect(remoteMastraAgent("http://127.0.0.1:1").generate("Hi")).rejects.toThrow("127.0.0.1:1");
  await expect(agent.resumeGenerate("Hi", { runId: "other" })).rejects.toThrow(
    "runId must be that of a suspended call of this agent; got other",
  );
});

test("cancels the task when its call is aborted", async () => {
  const abort = new AbortController();
  const { fullStream } = await remoteMastraAgent(await weather()).stream("hang", { abortSignal: abort.signal });
  for await (const chunk of fullStream) if (chunk.type === "reasoning-end") abort.abort();
  await expect.poll(() => canceled).toEqual(["hang"]);
});

test("stops an agent whose answer never ends", async () => {
  let sent = 0;
  async function* sendStreamingMessage(): AsyncGenerator<object> {
    for (; sent < 100; sent += 1) {
      const artifact = { artifactId: "a", parts: [{ text: "x".repeat(1 << 20) }] };
      yield { artifactUpdate: { taskId: "t", artifact, append: true } };
    }
  }
  const client = { sendStreamingMessage, card: { description: "x" } } as unknown as Client;
  await expect(remoteMastraAgent(client).generate("Hi")).rejects.toThrow("exceeds 33554432 bytes");
  expect(sent).toBeLessThan(40);
});

test("takes its description from the card or the host, and its name from the options", async () => {
  const url = await weather();
  expect(remoteMastraAgent(await connect(url)).getDescription()).toBe("Tells the weather");
  expect(remoteMastraAgent(url).getDescription()).toBe(`The agent at ${new URL(url).host}`);
  const { id, name } = remoteMastraAgent(url, { id: "weather" });
  expect([id, name]).toEqual(["weather", "weather"]);
});

const Stock = Agent as unknown as new (settings: object) => MastraAgent;

async function planner(model: Scripted): Promise<(host?: object) => Promise<Server>> {
  const agents = { weather: remoteMastraAgent(await weather(), { id: "weather" }) };
  const agent = new Stock({ id: "planner", name: "Planner", instructions: "Plan", model, agents });
  return async (host = {}) => {
    const served = fromMastra(agent, { ...card, name: "Planner" });
    const server = await serve(served, { port: 0, logger: false, store: memoryStore(), ...host });
    servers.push(server);
    return server;
  };
}

test("works as the subagent of another agent: its question reaches the user, and the answer continues its task", async () => {
  const model = new Scripted(calls(["c1", "agent-weather", { prompt: "Weather?" }]), says("Take a hat"));
  const { url } = await (await planner(model))();
  const conversation = (await connect(url)).conversation();
  const asked = await conversation.send("Plan");
  expect(asked.task?.status.message?.parts[0]?.text).toBe("agent-weather asks: Where?");
  const { task } = await conversation.send("Basel");
  expect(task?.artifacts?.[0]?.parts[0]?.text).toBe("Take a hat");
  expect(JSON.stringify(model.calls[1]?.prompt)).toContain("Sunny in Basel");
  expect(heard).toEqual(["Weather?", "Basel"]);
});

test("is called once by a turn that continues on another server: the call joins its task, and no model is called again", async () => {
  const model = new Scripted(calls(["c1", "agent-weather", { prompt: "slow" }]), says("Take a hat"));
  const warnings: string[] = [];
  const logger = { ...silentLogger, warn: (message: string) => void warnings.push(message) };
  const host = { store: memoryStore(), pollInterval: 20, logger };
  const serveAt = await planner(model);
  const first = await serveAt(host);
  const { task } = await (
    await connect(first.url)
  ).sendMessage({ message: { messageId: "m", parts: [{ text: "Plan" }] }, configuration: { returnImmediately: true } });
  await expect.poll(() => heard).toEqual(["slow"]);
  await first.close({ grace: 0 });
  const client = await connect((await serveAt(host)).url);
  await expect.poll(() => heard.length).toBe(1);
  slow.open();
  const ended = await client.waitFor(task?.id ?? "");
  expect(ended.artifacts?.[0]?.parts[0]?.text).toBe("Take a hat");
  expect([heard, model.calls.length, warnings]).toEqual([["slow"], 2, []]);
});
