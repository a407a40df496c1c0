import { tool as langTool } from "@langchain/core/tools";
import { interrupt } from "@langchain/langgraph";
import { createReactAgent } from "@langchain/langgraph/prebuilt";
import { Agent as MastraAgent } from "@mastra/core/agent";
import { createTool } from "@mastra/core/tools";
import { Agent as OpenAIAgent, tool as openAITool } from "@openai/agents";
import { connect, type Client, type Task } from "@parley/a2a";
import { serve, type Server } from "@parley/node";
import { memoryStore, type Agent } from "@parley/server";
import type { Store } from "@parley/server/store";
import { afterEach, describe, expect, test } from "vitest";
import * as z from "zod";
import { fromAISDK } from "../src/ai-sdk/index.ts";
import { fromClaude } from "../src/claude/index.ts";
import { durable, fromLangGraph } from "../src/langgraph/index.ts";
import { fromMastra, type MastraAgent as AnyMastraAgent } from "../src/mastra/index.ts";
import { fromOpenAIAgent } from "../src/openai-agents/index.ts";
import { scriptedQuery } from "./claude/scripted.ts";
import { gate } from "./gate.ts";
import { calls as chatCalls, ScriptedChat } from "./graphs.ts";
import * as openAI from "./scripted-openai.ts";
import { calls, says, Scripted } from "./scripted.ts";
import { versions } from "./versions.ts";

/* The contract of every adapter's agents. */

// Reads the text of the last status from the store, because a turn ends some time after the agent's last event.
const card = { name: "Test", description: "A test", version: "1.0.0", skills: [], mirrorArtifactText: true };

let server: Server | undefined;
afterEach(() => server?.close());

async function served(agent: Agent, store: Store = memoryStore()): Promise<Client> {
  server = await serve(agent, { port: 0, logger: false, store });
  return connect(server.url);
}

const textsOf = (task: Task | undefined): unknown =>
  task?.artifacts?.map(({ parts }) => parts.map(({ text }) => text).join(""));

/** An answer: a text, or the names of the tools to call. */
type Answer = string | readonly string[];

/** A model, and the tool `pay`. */
interface Script {
  /** `asked`: the model's input as JSON. `call`: the number of earlier calls. */
  model(call: number, asked: string): Answer | Promise<Answer>;
  pay?(signal?: AbortSignal): unknown;
  /** Whether a call of the tool needs approval. */
  readonly approves?: boolean;
}

const numbered = (names: readonly string[]) => names.map((name, at) => [`c${at}`, name, {}] as const);

/** The model of AI SDK and Mastra. */
function modelOf({ model }: Script): Scripted {
  let count = 0;
  return new Scripted(async function* ({ prompt }) {
    const answer = await model(count++, JSON.stringify(prompt));
    yield* typeof answer === "string" ? says(answer) : calls(...numbered(answer));
  });
}

const loops: Readonly<Record<string, (script: Script) => Agent>> = {
  ...Object.fromEntries(
    versions.map(({ name, ToolLoopAgent, tool, jsonSchema }) => [
      name,
      (script: Script) => {
        const execute = (_: unknown, { abortSignal }: { abortSignal: AbortSignal }) => script.pay?.(abortSignal);
        const needsApproval = script.approves ?? false;
        const tools = { pay: tool({ inputSchema: jsonSchema({ type: "object" }), execute, needsApproval }) };
        return fromAISDK(new ToolLoopAgent({ model: modelOf(script), tools }), card);
      },
    ]),
  ),
  mastra(script) {
    const execute = async (_: unknown, context: object): Promise<unknown> =>
      script.pay?.(Reflect.get(context, "abortSignal"));
    const requireApproval = script.approves ?? false;
    const pay = createTool({ id: "pay", description: "Pays", inputSchema: z.object({}), execute, requireApproval });
    const tools = { pay };
    const settings = { id: "test", name: "Test", instructions: "", model: modelOf(script), tools };
    const Stock = MastraAgent as unknown as new (settings: object) => AnyMastraAgent;
    return fromMastra(new Stock(settings), card);
  },
  openai({ model, pay, approves: needsApproval = false }) {
    let count = 0;
    const scripted = new openAI.Scripted(async function* ({ input }) {
      const answer = await model(count++, JSON.stringify(input));
      yield* typeof answer === "string" ? openAI.says(answer) : openAI.calls(...numbered(answer));
    });
    const execute = async (_: unknown, __: unknown, details?: { signal?: AbortSignal }) => pay?.(details?.signal);
    const definition = { name: "pay", description: "Pays", parameters: z.object({}), execute, needsApproval };
    const tools = [openAITool(definition)];
    return fromOpenAIAgent(new OpenAIAgent({ name: "Test", model: scripted, tools }), card);
  },
  langgraph({ model, pay, approves = false }) {
    let count = 0;
    const llm = new ScriptedChat(async function* (messages) {
      const answer = await model(count++, JSON.stringify(messages));
      yield typeof answer === "string" ? answer : chatCalls(...numbered(answer));
    });
    const call = async (_: unknown, { signal }: { signal?: AbortSignal }): Promise<unknown> => {
      if (approves) interrupt("Pay?");
      return pay?.(signal);
    };
    const tool = langTool(call, { name: "pay", schema: z.object({}) });
    return fromLangGraph(createReactAgent({ llm: durable.model(llm), tools: durable.tools([tool]) }), card);
  },
};

function claude({ model }: Script): Agent {
  let count = 0;
  const query = scriptedQuery({
    async model({ lines }) {
      const answer = await model(count++, JSON.stringify(lines));
      return typeof answer === "string" ? [{ type: "text", text: answer }] : [];
    },
  });
  return fromClaude(query, card);
}

describe.each(Object.entries({ ...loops, claude }))("%s", (_, agentOf) => {
  test("a message that arrives while the model answers becomes the next turn", async () => {
    const [begun, held] = [gate(), gate()];
    const read: string[] = [];
    const client = await served(
      agentOf({
        async model(call, asked) {
          read.push(asked);
          begun.open();
          await held.opened;
          return `Answer ${call}`;
        },
      }),
    );
    const configuration = { returnImmediately: true };
    const send = (message: object) => client.sendMessage({ message: { ...message }, configuration } as never);
    const { task: { id: taskId = "" } = {} } = await send({ parts: [{ text: "First" }] });
    await begun.opened;
    await send({ taskId, parts: [{ text: "Second" }] });
    held.open();
    await expect.poll(async () => (await client.getTask(taskId)).status.state).toBe("TASK_STATE_COMPLETED");
    expect(textsOf(await client.getTask(taskId))).toEqual(["Answer 0", "Answer 1"]);
    expect(read[1]).toMatch(/First.*Answer 0.*Second/);
  });
});

/** A memory store, and its appends as JSON. */
function recorded(): { readonly store: Store; readonly appends: string[] } {
  const store = memoryStore();
  const appends: string[] = [];
  const append = store.append.bind(store);
  store.append = (items) => {
    appends.push(...items.map((item) => JSON.stringify(item)));
    return append(items);
  };
  return { store, appends };
}

describe.each(Object.entries(loops))("%s", (_, agentOf) => {
  test("the end of a turn stores its final states, so a turn lost before then repeats no call", async () => {
    const { store, appends } = recorded();
    const pay = (): string => "Paid";
    const model = (_call: number, read: string): Answer => (read.includes("Paid") ? "Done" : ["pay"]);
    const conversation = (await served(agentOf({ approves: true, pay, model }), store)).conversation();
    const { task } = await conversation.send("Pay");
    expect(task?.status.state).toBe("TASK_STATE_INPUT_REQUIRED");
    const asked = appends.length;
    expect(textsOf((await conversation.send("yes")).task)).toEqual(["Done"]);
    const after = appends.slice(asked);
    const states = after.filter((item) => /"effect":"(taskState|contextState)"/.test(item));
    expect(states).toHaveLength(1);
    expect(states[0]).toContain('"TASK_STATE_COMPLETED"');
  });
});

const itself: Record<string, unknown> = {};
itself["itself"] = itself;

describe.each(Object.entries(loops))("%s", (name, agentOf) => {
  /** The input of the model after its tool calls. */
  async function readAfter(names: readonly string[], pay?: () => unknown): Promise<string> {
    let read = "";
    const model = (call: number, asked: string): Answer => {
      read = asked;
      return call === 0 ? names : "Done";
    };
    const { task } = await (await served(agentOf({ model, ...(pay && { pay }) }))).sendMessage("Pay");
    expect([task?.status.state, textsOf(task)]).toEqual(["TASK_STATE_COMPLETED", ["Done"]]);
    return read;
  }

  test.each<[string, () => unknown, RegExp]>([
    ["of 20 MB is too large", () => "x".repeat(20 << 20), /The result has (more than )?\d+ bytes/],
    // LangGraph can serialize such a value.
    [
      "with a circular reference is not JSON",
      () => itself,
      name === "langgraph" ? /Circular/ : /nests deeper than 100/,
    ],
    ["is undefined", () => undefined, /pay/],
  ])("tells the model that a result %s", async (_, result, said) => {
    expect(await readAfter(["pay"], result)).toMatch(said);
  });

  test("tells the model that a tool is unknown, even one with the name of an object member", async () => {
    // Mastra itself finds object members, and the task fails.
    const names = name === "mastra" ? ["steal"] : ["__proto__", "constructor", "toString"];
    const read = await readAfter(names);
    for (const each of names) expect(read).toContain(each);
  });

  test("aborts the model and a hanging tool when the task is canceled", async () => {
    const [begun, aborted] = [gate(), gate()];
    const pay = (signal?: AbortSignal): Promise<never> => {
      signal?.addEventListener("abort", aborted.open);
      begun.open();
      return new Promise(() => {});
    };
    const client = await served(agentOf({ model: () => ["pay"], pay }));
    const message = { parts: [{ text: "Pay" }] };
    const { task } = await client.sendMessage({ message, configuration: { returnImmediately: true } });
    await begun.opened;
    expect((await client.cancelTask(task?.id ?? "")).status.state).toBe("TASK_STATE_CANCELED");
    await aborted.opened;
  });
});
