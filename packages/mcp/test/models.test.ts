import { AIMessage, type ToolMessage } from "@langchain/core/messages";
import { DynamicStructuredTool } from "@langchain/core/tools";
import { ToolNode } from "@langchain/langgraph/prebuilt";
import { Agent, Runner, tool, Usage, type Model } from "@openai/agents";
import { defineAgent, type Turn } from "@parley/node";
import { testAgent } from "@parley/testing";
import * as ai7 from "ai";
import * as ai7test from "ai/test";
import * as ai6 from "ai-6";
import * as ai6test from "ai-6/test";
import { expect, onTestFinished, test } from "vitest";
import { mcpTools, toAISDK, toLangChain, toOpenAIAgents, type McpClient, type McpTools } from "../src/tools/index.ts";

/** A server that counts its calls. */
function counting(): McpClient & { readonly calls: unknown[] } {
  const calls: unknown[] = [];
  const inputSchema = {
    type: "object",
    properties: { height_meters: { type: "number" } },
    required: ["height_meters"],
  };
  return {
    calls,
    listTools: async () => ({ tools: [{ name: "raise_platform", description: "Raises it", inputSchema }] }),
    callTool: async ({ name, arguments: args }) => {
      calls.push([name, args]);
      return { content: [{ type: "text", text: `Raised for the ${calls.length}. time` }] };
    },
    getServerVersion: () => ({ name: "workshop" }),
  };
}

/** Runs a model's loop twice in a turn, as after a crash. */
async function inTurn(use: (tools: McpTools, turn: Turn) => Promise<string>): Promise<unknown[]> {
  const server = counting();
  const agent = defineAgent({
    name: "Mechanic",
    description: "Raises",
    version: "1.0.0",
    skills: [],
    async *onMessage(turn) {
      const first = await use(await mcpTools(turn, server), turn);
      const second = await use(await mcpTools(turn, server), turn);
      yield turn.completed(`${first}, ${second}`);
    },
  });
  const under = await testAgent(agent);
  onTestFinished(() => under.close());
  const { task } = await under.client.sendMessage("Go");
  expect(task?.status).toMatchObject({
    message: { parts: [{ text: "Raised for the 1. time, Raised for the 1. time" }] },
  });
  return server.calls;
}

const args = { height_meters: 2 };
const once = [["raise_platform", args]];

const usage = {
  inputTokens: { total: 1, noCache: 1, cacheRead: 0, cacheWrite: 0 },
  outputTokens: { total: 1, text: 1, reasoning: 0 },
};

test("work as tools of AI SDK 6 and 7, called once per id", async () => {
  const call = {
    type: "tool-call" as const,
    toolCallId: "call_1",
    toolName: "raise_platform",
    input: JSON.stringify(args),
  };
  const said = (finish: "tool-calls" | "stop") => ({
    content: finish === "stop" ? [{ type: "text" as const, text: "Done" }] : [call],
    finishReason: { unified: finish, raw: undefined },
    usage,
    warnings: [],
  });
  const answers = [said("tool-calls"), said("stop")];
  const outputs = ({ steps }: { steps: readonly { toolResults: readonly { output: unknown }[] }[] }) =>
    String(steps[0]?.toolResults[0]?.output);
  const with6 = await inTurn(async (tools) => {
    const model = new ai6test.MockLanguageModelV3({ doGenerate: answers });
    return outputs(
      await ai6.generateText({ model, tools: toAISDK(tools), prompt: "Go", stopWhen: ai6.stepCountIs(3) }),
    );
  });
  const with7 = await inTurn(async (tools) => {
    const model = new ai7test.MockLanguageModelV4({ doGenerate: answers });
    const result = await ai7.generateText({ model, tools: toAISDK(tools), prompt: "Go", stopWhen: ai7.isStepCount(3) });
    expect(model.doGenerateCalls[0]?.tools).toMatchObject([
      { name: "raise_platform", inputSchema: { properties: { height_meters: { type: "number" } } } },
    ]);
    return outputs(result);
  });
  expect([with6, with7]).toEqual([once, once]);
});

test("work as LangGraph tools, called once per id", async () => {
  const calls = await inTurn(async (tools) => {
    const node = new ToolNode(toLangChain(tools).map((each) => new DynamicStructuredTool(each)));
    const message = new AIMessage({ content: "", tool_calls: [{ id: "call_1", name: "raise_platform", args }] });
    const { messages } = (await node.invoke({ messages: [message] })) as { messages: ToolMessage[] };
    return messages[0]?.text ?? "";
  });
  expect(calls).toEqual(once);
  const [bare] = toLangChain(await listed());
  await expect(bare?.func(args)).rejects.toThrow("The call of raise_platform has no id");
});

test("work as tools of the OpenAI Agents SDK, called once per id", async () => {
  const calls = await inTurn(async (tools) => {
    let heard = "";
    const model: Model = {
      async getResponse({ input }) {
        const results = Array.isArray(input) ? input.filter(({ type }) => type === "function_call_result") : [];
        heard = JSON.stringify(results);
        const content = [{ type: "output_text" as const, text: "Done" }];
        const call = {
          type: "function_call",
          callId: "call_1",
          name: "raise_platform",
          arguments: JSON.stringify(args),
        };
        return {
          usage: new Usage(),
          output:
            results.length > 0
              ? [{ type: "message", role: "assistant", status: "completed", content }]
              : [{ ...call, type: "function_call", status: "completed" }],
        };
      },
      getStreamedResponse() {
        throw new Error("not used");
      },
    };
    const agent = new Agent({ name: "Mechanic", model, tools: toOpenAIAgents(tools).map((each) => tool(each)) });
    await new Runner({ tracingDisabled: true }).run(agent, "Go");
    return /Raised for the 1\. time/.exec(heard)?.[0] ?? heard;
  });
  expect(calls).toEqual(once);
});

async function listed(): Promise<McpTools> {
  let tools: McpTools | undefined;
  await inTurn(async (made) => {
    tools ??= made;
    return (await made.run("call_1", "raise_platform", args)).text;
  });
  if (tools === undefined) throw new Error("no tools");
  return tools;
}
