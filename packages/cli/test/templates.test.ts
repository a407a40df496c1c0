import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { json } from "node:stream/consumers";
import { setDefaultModelProvider } from "@openai/agents";
import { testAgent } from "@parley/testing";
import type { Agent } from "@parley/server";
import { beforeEach, expect, onTestFinished, test, vi } from "vitest";
import { createAgent } from "../templates/ai-sdk/agent.ts";
import { scriptedModel } from "../templates/ai-sdk/model.ts";
import { createAgent as createGraph } from "../templates/langgraph/agent.ts";
import { scriptedModel as graphScript } from "../templates/langgraph/model.ts";
import { createAgent as createMastraAgent } from "../templates/mastra/agent.ts";
import { scriptedModel as mastraScript } from "../templates/mastra/model.ts";
import { createAgent as createOpenAIAgent } from "../templates/openai/agent.ts";
import { scriptedModel as openAIScript } from "../templates/openai/model.ts";

/* The agents that `parley init --with` writes, with the model that the environment chooses. Their own tests run in test/release, and
 * test/interop/claude.test.ts has that of Claude. */

beforeEach(() => {
  vi.resetModules();
  return () => vi.unstubAllEnvs();
});

/** An API of a model on loopback. Resolves to its address. */
async function startApi(
  answer: (request: IncomingMessage, response: ServerResponse) => Promise<void>,
): Promise<string> {
  const server = createServer((request, response) => void answer(request, response));
  onTestFinished(() => void server.close());
  await once(server.listen(0, "127.0.0.1"), "listening");
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
}

async function ask(agent: Agent, text: string): Promise<string | undefined> {
  const { client, problems, close } = await testAgent(agent);
  const { task } = await client.sendMessage(text);
  await close();
  expect(task?.status.state, problems.join("\n")).toBe("TASK_STATE_COMPLETED");
  return task?.artifacts?.[0]?.parts[0]?.text;
}

test("ai-sdk: uses the model AI_MODEL of the default provider", async () => {
  const asked: string[] = [];
  const languageModel = (id: string): unknown => {
    asked.push(id);
    return scriptedModel;
  };
  vi.stubGlobal("AI_SDK_DEFAULT_PROVIDER", { languageModel });
  expect(await ask(createAgent(scriptedModel), "roll")).toBe("Which dice? For example 2d6.");
  expect(asked).toEqual([]);
  vi.stubEnv("AI_MODEL", "openai/gpt-5");
  const { default: real } = await import("../templates/ai-sdk/agent.ts");
  expect(await ask(real, "roll 3d1")).toBe("1 + 1 + 1 = 3");
  expect(new Set(asked)).toEqual(new Set(["openai/gpt-5"]));
  vi.unstubAllGlobals();
});

test("langgraph: names the package that AI_MODEL needs", async () => {
  expect(await ask(createGraph(graphScript), "roll")).toBe("Which dice? For example 2d6.");
  expect(await ask(createGraph(graphScript), "roll 3d1")).toBe("1 + 1 + 1 = 3");
  vi.stubEnv("AI_MODEL", "gpt-5");
  await expect(import("../templates/langgraph/agent.ts")).rejects.toThrow("@langchain/openai");
});

test("mastra: uses the model AI_MODEL of its provider", async () => {
  expect(await ask(createMastraAgent(mastraScript), "roll")).toBe("Which dice? For example 2d6.");
  const asked: object[] = [];
  const events = [
    { type: "response.created", response: { id: "1", created_at: 0, model: "gpt-5" } },
    { type: "response.output_item.added", output_index: 0, item: { type: "message", id: "2" } },
    { type: "response.output_text.delta", item_id: "2", delta: "It is 2." },
    { type: "response.output_item.done", output_index: 0, item: { type: "message", id: "2" } },
    { type: "response.completed", response: { usage: { input_tokens: 1, output_tokens: 1 } } },
  ];
  const url = await startApi(async (request, response) => {
    const { model } = (await json(request)) as { model: unknown };
    asked.push({ path: request.url, key: request.headers.authorization, model });
    response.setHeader("content-type", "text/event-stream");
    response.end(events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join(""));
  });
  vi.stubEnv("AI_MODEL", "openai/gpt-5");
  vi.stubEnv("OPENAI_API_KEY", "secret-of-the-api");
  vi.stubEnv("OPENAI_BASE_URL", url);
  const { default: real } = await import("../templates/mastra/agent.ts");
  expect(await ask(real, "roll 2d1")).toBe("It is 2.");
  expect(asked).toEqual([{ path: "/v1/responses", key: "Bearer secret-of-the-api", model: "gpt-5" }]);
});

test("openai: uses the model AI_MODEL of the default provider", async () => {
  const asked: (string | undefined)[] = [];
  expect(await ask(createOpenAIAgent(openAIScript), "roll")).toBe("Which dice? For example 2d6.");
  setDefaultModelProvider({
    getModel: (name) => {
      asked.push(name);
      return openAIScript;
    },
  });
  vi.stubEnv("AI_MODEL", "gpt-5");
  const { default: real } = await import("../templates/openai/agent.ts");
  expect(await ask(real, "roll 3d1")).toBe("1 + 1 + 1 = 3");
  expect(new Set(asked)).toEqual(new Set(["gpt-5"]));
});

test("mcp: uses the model AI_MODEL of a compatible API, and tells it which calls were wrong", async () => {
  const requests: { readonly headers: IncomingMessage["headers"]; readonly body: unknown }[] = [];
  const call = (id: string, name: string, args: string): object => ({
    role: "assistant",
    content: null,
    tool_calls: [{ id, type: "function", function: { name, arguments: args } }],
  });
  const script = [
    call("1", "steal", "{}"),
    call("2", "roll_dice", '{"count":'),
    call("3", "roll_dice", "[2]"),
    call("4", "roll_dice", '{"count":2,"sides":1}'),
    { role: "assistant", content: "It is 2." },
  ];
  const answer = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    requests.push({ headers: request.headers, body: await json(request) });
    response.setHeader("content-type", "application/json");
    response.end(JSON.stringify({ id: "x", choices: [{ index: 0, message: script[requests.length - 1] }] }));
  };
  vi.stubEnv("AI_MODEL", "gpt-5");
  vi.stubEnv("OPENAI_API_KEY", "secret-of-the-api");
  vi.stubEnv("OPENAI_BASE_URL", await startApi(answer));
  const { default: agent, pool } = await import("../templates/mcp/agent.ts");
  expect(await ask(agent, "roll 2d1")).toBe("It is 2.");
  await pool.close();
  expect(requests.map(({ headers }) => headers.authorization)).toEqual(script.map(() => "Bearer secret-of-the-api"));
  expect(requests[4]?.body).toMatchObject({
    model: "gpt-5",
    tools: [{ type: "function", function: { name: "roll_dice", parameters: { required: ["count", "sides"] } } }],
    messages: [
      { role: "user", content: "roll 2d1" },
      script[0],
      { role: "tool", tool_call_id: "1", content: expect.stringContaining("steal") },
      script[1],
      { role: "tool", tool_call_id: "2", content: expect.stringContaining("JSON") },
      script[2],
      { role: "tool", tool_call_id: "3", content: expect.stringContaining("expected record") },
      script[3],
      { role: "tool", tool_call_id: "4", content: "1 + 1 = 2" },
    ],
  });
});
