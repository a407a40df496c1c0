import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { json } from "node:stream/consumers";
import { setDefaultModelProvider } from "@openai/agents";
import { testAgent } from "@parley/testing";
import type { Agent } from "@parley/server";
import { afterAll, beforeEach, expect, test, vi } from "vitest";
import { createAgent } from "../templates/ai-sdk/agent.ts";
import { scriptedModel } from "../templates/ai-sdk/model.ts";
import { createAgent as createGraph } from "../templates/langgraph/agent.ts";
import { scriptedModel as graphScript } from "../templates/langgraph/model.ts";
import { createAgent as createOpenAIAgent } from "../templates/openai/agent.ts";
import { scriptedModel as openAIScript } from "../templates/openai/model.ts";

/* The agents that `parley init --with` writes, with the model that the environment chooses. Their own tests run in test/release. */

beforeEach(() => {
  vi.resetModules();
  return () => vi.unstubAllEnvs();
});

const answers = createServer();
afterAll(() => void answers.close());

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
  answers.on("request", (...exchange) => void answer(...exchange));
  await once(answers.listen(0, "127.0.0.1"), "listening");
  vi.stubEnv("AI_MODEL", "gpt-5");
  vi.stubEnv("OPENAI_API_KEY", "secret-of-the-api");
  vi.stubEnv("OPENAI_BASE_URL", `http://127.0.0.1:${(answers.address() as AddressInfo).port}/v1`);
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
