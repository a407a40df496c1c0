import { tool as langTool } from "@langchain/core/tools";
import { FakeListChatModel } from "@langchain/core/utils/testing";
import { Annotation, MessagesAnnotation, START, StateGraph } from "@langchain/langgraph";
import { createReactAgent } from "@langchain/langgraph/prebuilt";
import { Agent, tool as openaiTool } from "@openai/agents";
import { Output, ToolLoopAgent, tool } from "ai";
import { Output as Output6, ToolLoopAgent as ToolLoopAgent6, tool as tool6 } from "ai-6";
import { expect, test } from "vitest";
import * as z from "zod";
import {
  a2aTool,
  fromAISDK,
  idempotencyOf,
  type AISDKAgentFactory,
  type AISDKDefinition,
} from "../src/ai-sdk/index.ts";
import { durable, fromLangGraph, type LangGraphDefinition, type LangGraphFactory } from "../src/langgraph/index.ts";
import { fromOpenAIAgent, idempotencyOf as openaiStep } from "../src/openai-agents/index.ts";

/* Tests of types: `tsc` checks that each line below `@ts-expect-error` does not compile. */

const definition: AISDKDefinition = { name: "A", description: "A test", version: "1.0.0", skills: [] };
const inputSchema = z.object({ amount: z.number() });
const model = "openai/gpt-5";

const pay = tool({ inputSchema, execute: ({ amount }, options) => ({ amount, key: idempotencyOf(options)?.key }) });
const pay6 = tool6({ inputSchema, execute: ({ amount }, options) => ({ amount, key: idempotencyOf(options)?.key }) });

test("accepts agents of both versions, with tools, outputs and factories", () => {
  const output = Output.object({ schema: inputSchema });
  const output6 = Output6.object({ schema: inputSchema });
  expect(fromAISDK(new ToolLoopAgent({ model, tools: { pay }, output }), definition)).toBeDefined();
  expect(fromAISDK(new ToolLoopAgent6({ model, tools: { pay: pay6 }, output: output6 }), definition)).toBeDefined();
  const factory: AISDKAgentFactory = (durable) =>
    new ToolLoopAgent({ model: durable.model(model), tools: durable.tools({ pay }) });
  expect(fromAISDK(factory, definition)).toBeDefined();
});

test("rejects anything except an agent", () => {
  const wrong = (): unknown[] => [
    // @ts-expect-error -- not an agent
    fromAISDK({ version: "agent-v1" }, definition),
    // @ts-expect-error -- a model is not an agent
    fromAISDK(model, definition),
    // @ts-expect-error -- the description lacks a version
    fromAISDK(new ToolLoopAgent({ model }), { name: "A", description: "A test", skills: [] }),
    // @ts-expect-error -- no such option
    fromAISDK(new ToolLoopAgent({ model }), { ...definition, reasonings: true }),
    // @ts-expect-error -- the adapter writes onMessage
    fromAISDK(new ToolLoopAgent({ model }), { ...definition, onMessage: () => undefined }),
    // @ts-expect-error -- the agent needs call options, which a turn does not have
    fromAISDK(new ToolLoopAgent<{ user: string }>({ model }), definition),
    // @ts-expect-error -- the same in version 6
    fromAISDK(new ToolLoopAgent6<{ user: string }>({ model }), definition),
    // @ts-expect-error -- a client is needed
    a2aTool("https://agent.example.com", { description: "Weather" }),
  ];
  expect(wrong).toBeTypeOf("function");
});

test("accepts OpenAI Agents SDK agents, with outputs, handoffs and contexts", () => {
  interface User {
    readonly token: string;
  }
  const refund = openaiTool({
    name: "refund",
    description: "Refunds",
    parameters: inputSchema,
    execute: ({ amount }, _context, details) => ({ amount, key: openaiStep(details)?.key }),
  });
  const plain = new Agent({ name: "A", tools: [refund] });
  const typed = Agent.create({ name: "B", outputType: inputSchema, handoffs: [plain] });
  const known = new Agent<User>({ name: "C", instructions: ({ context }) => context.token });
  expect(fromOpenAIAgent(plain, definition)).toBeDefined();
  expect(fromOpenAIAgent(typed, { ...definition, maxTurns: 3, runConfig: { tracingDisabled: false } })).toBeDefined();
  expect(fromOpenAIAgent(Agent.create({ name: "D", handoffs: [plain, typed] }), definition)).toBeDefined();
  expect(fromOpenAIAgent(known, { ...definition, context: ({ taskId }) => ({ token: taskId }) })).toBeDefined();
  const wrong = (): unknown[] => [
    // @ts-expect-error -- not an agent
    fromOpenAIAgent({ name: "A" }, definition),
    // @ts-expect-error -- an agent of the AI SDK
    fromOpenAIAgent(new ToolLoopAgent({ model }), definition),
    // @ts-expect-error -- the description lacks a version
    fromOpenAIAgent(plain, { name: "A", description: "A test", skills: [] }),
    // @ts-expect-error -- no such option
    fromOpenAIAgent(plain, { ...definition, maxTurn: 3 }),
    // @ts-expect-error -- the adapter writes onMessage
    fromOpenAIAgent(plain, { ...definition, onMessage: () => undefined }),
    // @ts-expect-error -- the agent needs a context
    fromOpenAIAgent(known, definition),
    // @ts-expect-error -- it needs another context
    fromOpenAIAgent(known, { ...definition, context: () => ({ user: "me" }) }),
  ];
  expect(wrong).toBeTypeOf("function");
});

const graphs: LangGraphDefinition = { name: "A", description: "A test", version: "1.0.0", skills: [] };
const chat = new FakeListChatModel({ responses: ["Hi"] });
const langPay = langTool(({ amount }) => amount, { name: "pay", schema: inputSchema });

test("accepts LangGraph graphs, with durable models and tools, and factories", () => {
  const agent = createReactAgent({ llm: durable.model(chat), tools: durable.tools([langPay]) });
  const State = Annotation.Root({ count: Annotation<number> });
  const counter = new StateGraph(State).addNode("more", () => ({ count: 1 })).addEdge(START, "more");
  expect(fromLangGraph(agent, graphs)).toBeDefined();
  expect(fromLangGraph({ graph: agent }, graphs)).toBeDefined();
  expect(fromLangGraph(counter.compile(), { ...graphs, input: () => ({ count: 0 }) })).toBeDefined();
  const factory: LangGraphFactory = ({ model, tools }) =>
    createReactAgent({ llm: model(chat), tools: tools([langPay]) });
  expect(fromLangGraph(factory, graphs)).toBeDefined();
  const [same] = durable.tools([langPay]);
  expect<typeof langPay>(same).toBeDefined();
  expect<FakeListChatModel>(durable.model(chat)).toBeDefined();
});

test("rejects anything except a graph", () => {
  const agent = createReactAgent({ llm: chat, tools: [] });
  const wrong = (): unknown[] => [
    // @ts-expect-error -- not compiled
    fromLangGraph(new StateGraph(MessagesAnnotation), graphs),
    // @ts-expect-error -- a model is not a graph
    fromLangGraph(chat, graphs),
    // @ts-expect-error -- the description lacks a version
    fromLangGraph(agent, { name: "A", description: "A test", skills: [] }),
    // @ts-expect-error -- no such option
    fromLangGraph(agent, { ...graphs, inputs: () => ({}) }),
    // @ts-expect-error -- the adapter writes onMessage
    fromLangGraph(agent, { ...graphs, onMessage: () => undefined }),
    // @ts-expect-error -- an input is an object
    fromLangGraph(agent, { ...graphs, input: () => "Hi" }),
    // @ts-expect-error -- a tool is not a model
    durable.model(langPay),
    // @ts-expect-error -- a name is not a tool
    durable.tools(["pay"]),
  ];
  expect(wrong).toBeTypeOf("function");
});
