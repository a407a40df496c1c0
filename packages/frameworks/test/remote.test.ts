import { connect, type Client } from "@parley/a2a";
import { defineAgent, serve, text, type Server } from "@parley/node";
import { memoryStore } from "@parley/server";
import { ToolLoopAgent } from "ai";
import { ToolLoopAgent as ToolLoopAgent6 } from "ai-6";
import { afterEach, expect, test } from "vitest";
import { a2aTool, fromAISDK, remoteAgent, type AISDKAgent } from "../src/ai-sdk/index.ts";
import { calls, says, Scripted } from "./scripted.ts";

const card = { description: "A test", version: "1.0.0", skills: [] };

const servers: Server[] = [];
afterEach(() => Promise.all(servers.splice(0).map((server) => server.close())));

const heard: string[] = [];

async function weather(): Promise<string> {
  heard.length = 0;
  const agent = defineAgent({
    ...card,
    name: "Weather",
    mayReplyDirectly: false,
    async *onMessage(turn) {
      heard.push(turn.text);
      if (turn.text === "fail") return yield turn.failed("No weather");
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

test("a remote agent streams text and progress, and the next call answers its question", async () => {
  const agent = remoteAgent(await connect(await weather()));
  expect(agent.version).toBe("agent-v1");
  const asked = await agent.generate({ prompt: "Weather?" });
  expect(asked.text).toBe("Where?");
  const { taskId, contextId } = agent.conversation;
  const result = await agent.stream({ prompt: "Basel" });
  let streamed = "";
  for await (const delta of result.textStream) streamed += delta;
  expect(streamed).toBe("Sunny in Basel");
  expect(await result.reasoningText).toContain("Looking");
  expect((await result.providerMetadata)?.["a2a"]).toEqual({ taskId, contextId, state: "TASK_STATE_COMPLETED" });
  expect(heard).toEqual(["Weather?", "Basel"]);
});

test("a remote agent fails if the remote task fails", async () => {
  const agent = remoteAgent(await connect(await weather()));
  await expect(agent.generate({ prompt: "fail" })).rejects.toThrow("The remote task has failed: No weather");
});

test.each([
  ["ai 6", ToolLoopAgent6],
  ["ai 7", ToolLoopAgent],
] as const)(
  "a remote agent as a tool has preliminary results, and a repeated call joins its task: %s",
  async (_, Loop) => {
    const tools = { weather: a2aTool(await connect(await weather()), { description: "Weather" }) };
    const options = { toolCallId: "c1", messages: [] };
    const outputs: unknown[] = [];
    for (let call = 0; call < 2; call += 1) {
      const results = Reflect.apply(tools.weather.execute ?? (() => {}), undefined, [{ message: "Basel" }, options]);
      for await (const output of results as AsyncIterable<{ text: string }>) outputs.push(output.text);
    }
    expect(outputs.at(-1)).toBe("Sunny in Basel");
    expect(heard).toEqual(["Basel"]);

    const model = new Scripted(
      calls(["c2", "weather", { message: "Bern" }], ["c3", "weather", { message: "fail" }]),
      says("Done"),
    );
    const settings = { model, tools } as unknown as ConstructorParameters<typeof ToolLoopAgent>[0];
    const loop = new (Loop as typeof ToolLoopAgent)(settings) as unknown as AISDKAgent;
    const server = await serve(fromAISDK(loop, { ...card, name: "Planner" }), {
      port: 0,
      logger: false,
      store: memoryStore(),
    });
    servers.push(server);
    const { task } = await (await connect(server.url)).sendMessage("Plan");
    expect(task?.artifacts?.[0]?.parts[0]?.text).toBe("Done");
    const prompt = JSON.stringify(model.calls[1]?.prompt);
    expect(prompt).toContain("Sunny in Bern");
    expect(prompt).toContain("No weather");
  },
);

test("an endless answer fails the tool", async () => {
  let sent = 0;
  async function* sendStreamingMessage(): AsyncGenerator<object> {
    for (; sent < 100; sent += 1) {
      const artifact = { artifactId: "a", parts: [{ text: "x".repeat(1 << 20) }] };
      yield { artifactUpdate: { taskId: "t", artifact, append: true } };
    }
  }
  const client = { sendStreamingMessage } as unknown as Client;
  const { execute } = a2aTool(client, { description: "Endless" });
  const results = Reflect.apply(execute ?? (() => {}), undefined, [
    { message: "x" },
    { toolCallId: "c", messages: [] },
  ]);
  const read = async (): Promise<void> => {
    for await (const result of results as AsyncIterable<object>) expect(result).toHaveProperty("text");
  };
  await expect(read()).rejects.toThrow("exceeds 33554432 bytes");
  expect(sent).toBeLessThan(40);
});

test("a remote agent's text, message and file appear once, even if the agent repeats its text or the client reconnects", async () => {
  const status = (text: string, messageId: string, state: string): object => ({
    status: { state, message: { messageId, role: "ROLE_AGENT", parts: [{ text }] } },
  });
  const artifact = { artifactId: "a", parts: [{ text: "Sunny" }, { raw: btoa("png"), mediaType: "image/png" }] };
  const looking = status("Looking", "m1", "TASK_STATE_WORKING");
  const events = [
    { statusUpdate: { taskId: "t", ...looking } },
    { artifactUpdate: { taskId: "t", artifact: { ...artifact, parts: artifact.parts.slice(0, 1) } } },
    { artifactUpdate: { taskId: "t", artifact: { ...artifact, parts: artifact.parts.slice(1) }, append: true } },
    { task: { id: "t", artifacts: [artifact], ...looking } },
    { artifactUpdate: { taskId: "t", artifact: { artifactId: "b", parts: [{ text: "Warm" }] } } },
    { statusUpdate: { taskId: "t", ...status("Sunny\nWarm\n", "m2", "TASK_STATE_COMPLETED") } },
  ];
  const conversation = { taskId: "t", contextId: "c", stream: () => ReadableStream.from(events) };
  const agent = remoteAgent({ conversation: () => conversation } as unknown as Client);
  const { text, reasoningText, files } = await agent.generate({ prompt: "Weather?" });
  expect({ text, reasoningText }).toEqual({ text: "SunnyWarm", reasoningText: "Looking" });
  expect(files.map(({ base64 }) => base64)).toEqual([btoa("png")]);
});
