import { connect, type Client } from "@parley/a2a";
import { serve, type Server } from "@parley/node";
import { memoryStore } from "@parley/server";
import { afterEach, describe, expect, test } from "vitest";
import * as ai7 from "ai";
import type { LanguageModel } from "ai";
import { fromAISDK, idempotencyOf, type AISDKAgent, type AISDKAgentFactory } from "../src/ai-sdk/index.ts";
import { calls, finish, says, Scripted } from "./scripted.ts";
import { versions } from "./versions.ts";

const card = { name: "Test", description: "A test", version: "1.0.0", skills: [] };

let server: Server | undefined;
afterEach(() => server?.close());

async function served(agent: AISDKAgent, more: object = {}): Promise<Client> {
  server = await serve(fromAISDK(agent, { ...card, defaultInputModes: ["*"], ...more }), {
    port: 0,
    logger: false,
    store: memoryStore(),
  });
  return connect(server.url);
}

describe.each(versions)("$name", ({ ToolLoopAgent, tool, jsonSchema, stepCountIs, Output }) => {
  const pay = (execute: unknown, more: object = {}): object => ({
    pay: tool({
      description: "Pays",
      inputSchema: jsonSchema({ type: "object", properties: { amount: { type: "number" } }, required: ["amount"] }),
      execute,
      ...more,
    }),
  });

  test("streams text as an artifact, and reports usage", async () => {
    const model = new Scripted(says("Hello, ", "world"));
    const client = await served(new ToolLoopAgent({ model, instructions: "Be brief" }));
    const { task } = await client.sendMessage("Hi");
    expect(task?.artifacts).toMatchObject([{ name: "answer", parts: [{ text: "Hello, world" }] }]);
    expect(task?.status.state).toBe("TASK_STATE_COMPLETED");
    const prompt = model.calls[0]?.prompt ?? [];
    expect(prompt.map(({ role }) => role)).toEqual(["system", "user"]);
  });

  test("runs tools, and passes their results to the model", async () => {
    const model = new Scripted(calls(["c1", "pay", { amount: 5 }]), says("Paid"));
    const inputs: unknown[] = [];
    const tools = pay(async (input: unknown) => {
      inputs.push(input);
      return { receipt: 1 };
    });
    const client = await served(new ToolLoopAgent({ model, tools }));
    const states: string[] = [];
    for await (const { statusUpdate } of client.sendStreamingMessage("Pay 5"))
      states.push(String(statusUpdate?.status.message?.parts[0]?.text));
    expect(states).toContain("Calling pay");
    expect(inputs).toEqual([{ amount: 5 }]);
    expect(JSON.stringify(model.calls[1]?.prompt)).toContain("receipt");
  });

  test("turns tool errors, unknown tools and invalid arguments into results that the model reads", async () => {
    const model = new Scripted(
      calls(["c1", "pay", { amount: 5 }], ["c2", "steal", {}], ["c3", "pay", '{"amount":']),
      says("Sorry"),
    );
    const tools = pay(async () => {
      throw new Error("No funds");
    });
    const client = await served(new ToolLoopAgent({ model, tools }));
    const { task } = await client.sendMessage("Pay 5");
    expect(task?.status.state).toBe("TASK_STATE_COMPLETED");
    const prompt = JSON.stringify(model.calls[1]?.prompt);
    expect(prompt).toContain("No funds");
    expect(prompt).toContain("steal");
    expect(task?.artifacts?.[0]?.parts[0]?.text).toBe("Sorry");
  });

  test("forwards preliminary results of a generator", async () => {
    const model = new Scripted(calls(["c1", "pay", { amount: 5 }]), says("Done"));
    async function* execute(): AsyncGenerator<string> {
      yield "half";
      yield "whole";
    }
    const client = await served(new ToolLoopAgent({ model, tools: pay(execute) }));
    const said: string[] = [];
    for await (const { statusUpdate } of client.sendStreamingMessage("Pay 5"))
      said.push(String(statusUpdate?.status.message?.parts[0]?.text));
    expect(said).toContain("half");
    expect(JSON.stringify(model.calls[1]?.prompt)).toContain("whole");
    expect(JSON.stringify(model.calls[1]?.prompt)).not.toContain("half");
  });

  describe("approvals", () => {
    const paying = async (...amounts: readonly number[]) => {
      const wanted = amounts.map((amount, at) => [`c${at + 1}`, "pay", { amount }] as const);
      const model = new Scripted(calls(...wanted), says("Thanks"));
      const paid: unknown[] = [];
      const execute = async (input: unknown): Promise<string> => {
        paid.push(input);
        return "paid";
      };
      const client = await served(new ToolLoopAgent({ model, tools: pay(execute, { needsApproval: true }) }));
      const conversation = client.conversation();
      const { task } = await conversation.send("Pay");
      expect(task?.status.state).toBe("TASK_STATE_INPUT_REQUIRED");
      const parts = task?.status.message?.parts ?? [];
      const { approvals } = (parts[1]?.data ?? {}) as { approvals: { digest: string; approvalId: string }[] };
      return { model, paid, conversation, parts, approvals };
    };

    test("asks with the tool, arguments, digest and form, and runs the tool after yes", async () => {
      const { model, paid, conversation, parts, approvals } = await paying(5);
      expect(parts[0]?.text).toBe('Approve pay {"amount":5}?');
      expect(approvals).toMatchObject([{ toolCallId: "c1", toolName: "pay", input: { amount: 5 } }]);
      expect(parts[2]).toMatchObject({
        mediaType: "application/schema+json",
        data: { required: ["approved", "digest"] },
      });
      expect(paid).toEqual([]);
      const { task } = await conversation.send("yes");
      expect(task?.artifacts?.[0]?.parts[0]?.text).toBe("Thanks");
      expect(paid).toEqual([{ amount: 5 }]);
      expect(model.calls).toHaveLength(2);
    });

    test("asks again after another digest or another text, and never runs the tool", async () => {
      const { paid, conversation } = await paying(5);
      for (const answer of [[{ data: { approved: true, digest: "00" } }], [{ text: "What is it for?" }]]) {
        const { task } = await conversation.send({ parts: answer });
        expect(task?.status.state).toBe("TASK_STATE_INPUT_REQUIRED");
        expect(task?.status.message?.parts[0]?.text).toBe('Approve pay {"amount":5}?');
      }
      expect(paid).toEqual([]);
    });

    test("accepts several decisions at once, and tells the model the reason for a denial", async () => {
      const { model, paid, conversation, approvals } = await paying(5, 6);
      const [one, two] = approvals;
      const again = await conversation.send({ parts: [{ data: { approved: true, digest: one?.digest ?? "" } }] });
      expect(again.task?.status.state).toBe("TASK_STATE_INPUT_REQUIRED");
      const answers = [
        { data: { approved: true, digest: one?.digest ?? "" } },
        { data: { approved: false, reason: "Too dear", digest: two?.digest ?? "" } },
      ];
      const { task } = await conversation.send({ parts: answers });
      expect(task?.status.state).toBe("TASK_STATE_COMPLETED");
      expect(paid).toEqual([{ amount: 5 }]);
      expect(JSON.stringify(model.calls[1]?.prompt)).toContain("Too dear");
    });
  });

  test("ignores a yes that was sent before the question", async () => {
    const wanted = [5, 6].map((amount, at) => calls([`c${at}`, "pay", { amount }]));
    const model = new Scripted(...wanted, says("Thanks"));
    const paid: unknown[] = [];
    let open = (): void => {};
    const opened = new Promise<void>((resolve) => (open = resolve));
    const execute = async (input: unknown): Promise<string> => {
      paid.push(input);
      await opened;
      return "paid";
    };
    const client = await served(new ToolLoopAgent({ model, tools: pay(execute, { needsApproval: true }) }));
    const id = (await client.sendMessage("Pay")).task?.id ?? "";
    const send = (text: string) =>
      client.sendMessage({
        message: { messageId: crypto.randomUUID(), taskId: id, parts: [{ text }] },
        configuration: { returnImmediately: true },
      });
    await send("yes");
    await expect.poll(() => paid.length).toBe(1);
    await send("yes");
    open();
    await expect.poll(async () => (await client.getTask(id)).history?.length).toBeGreaterThan(5);
    const { status } = await client.getTask(id);
    expect([status.state, status.message?.parts[0]?.text]).toEqual([
      "TASK_STATE_INPUT_REQUIRED",
      'Approve pay {"amount":6}?',
    ]);
    expect(paid).toEqual([{ amount: 5 }]);
    await send("yes");
    await expect.poll(() => paid.length).toBe(2);
  });

  test("stops a model whose answer never ends", async () => {
    const schema = jsonSchema({ type: "object", properties: {} });
    let sent = 0;
    const model = new Scripted(async function* () {
      yield { type: "text-start", id: "1" };
      for (; sent < 1000; sent += 1) yield { type: "text-delta", id: "1", delta: "x".repeat(10_000) };
    });
    const client = await served(new ToolLoopAgent({ model, output: Output.object({ schema }) }));
    expect((await client.sendMessage("Hi")).task?.status.state).toBe("TASK_STATE_FAILED");
    expect(sent).toBeLessThan(40);
  });

  test("reports usage and sources", async () => {
    const source = { type: "source", sourceType: "url", id: "s", url: "https://example.com/", title: "Example" };
    const model = new Scripted([source, ...says("Hello")]);
    const client = await served(new ToolLoopAgent({ model }));
    const { task } = await client.sendMessage("Hi");
    expect(task?.artifacts).toMatchObject([
      { name: "answer" },
      { name: "sources", parts: [{ data: { source: { url: "https://example.com/", title: "Example" } } }] },
    ]);
    const ends: unknown[] = [];
    for await (const { statusUpdate } of client.sendStreamingMessage("Hi")) ends.push(statusUpdate?.metadata ?? []);
    expect(ends.flat().at(-1)).toMatchObject({
      "gen_ai.usage.input_tokens": 7,
      "gen_ai.usage.output_tokens": 11,
      "gen_ai.response.finish_reasons": ["stop"],
    });
  });

  test.each([true, false])(
    "shows reasoning as progress if `reasoning` is %s, and never stores it",
    async (reasoning) => {
      const thought = says("Two ", "and two").map((part) => ({
        ...part,
        type: part.type.replace("text", "reasoning"),
      }));
      const model = new Scripted([...thought.slice(0, -1), ...says("Four")]);
      const client = await served(new ToolLoopAgent({ model }), { reasoning });
      let [shown, id] = ["", ""];
      for await (const { task, statusUpdate } of client.sendStreamingMessage("Hi")) {
        id = task?.id ?? id;
        shown += statusUpdate?.status.message?.parts[0]?.text ?? "";
      }
      expect(shown).toBe(reasoning ? "Two and two" : "");
      const { artifacts, history } = await client.getTask(id);
      expect(artifacts?.map(({ parts }) => parts[0]?.text)).toEqual(["Four"]);
      expect(JSON.stringify(history)).not.toContain("two");
    },
  );

  test("returns files as artifacts, documents as sources, and the usage of all answers", async () => {
    const document = { type: "source", sourceType: "document", id: "d", mediaType: "text/plain", title: "Notes" };
    const file = { type: "file", mediaType: "image/png" };
    const files = [
      { ...file, data: btoa("base64") },
      { ...file, data: new TextEncoder().encode("bytes") },
    ];
    const [begin, piece, end, done] = says("Done");
    const answer = [begin, piece, ...files, document, end, done].flatMap((part) => part ?? []);
    const model = new Scripted(calls(["c1", "pay", { amount: 5 }]), answer);
    const client = await served(new ToolLoopAgent({ model, tools: pay(() => "paid") }), { defaultOutputModes: ["*"] });
    const ends: unknown[] = [];
    let id = "";
    for await (const { task, statusUpdate } of client.sendStreamingMessage("Hi")) {
      id = task?.id ?? id;
      ends.push(statusUpdate?.metadata ?? []);
    }
    expect(ends.flat().at(-1)).toMatchObject({ "gen_ai.usage.input_tokens": 14, "gen_ai.usage.output_tokens": 22 });
    const { artifacts } = await client.getTask(id);
    expect(artifacts?.map(({ name, parts }) => [name, parts])).toMatchObject([
      ["answer", [{ text: "Done" }]],
      ["file", [{ raw: btoa("base64"), mediaType: "image/png" }]],
      ["file", [{ raw: btoa("bytes"), mediaType: "image/png" }]],
      ["sources", [{ data: { source: { id: "d", mediaType: "text/plain", title: "Notes" } } }]],
    ]);
  });

  test("returns an object as data", async () => {
    const model = new Scripted(says('{"city":', '"Basel"}'));
    const schema = jsonSchema({ type: "object", properties: { city: { type: "string" } }, required: ["city"] });
    const client = await served(new ToolLoopAgent({ model, output: Output.object({ schema }) }));
    const { task } = await client.sendMessage("Where?");
    expect(task?.artifacts).toMatchObject([{ name: "answer", parts: [{ data: { city: "Basel" } }] }]);
  });

  test.each([
    ["length", "COMPLETED", /incomplete/],
    ["content-filter", "FAILED", /withheld/],
    ["error", "FAILED", /The model failed/],
  ])("reports the finish reason %s", async (reason, state, said) => {
    const model = new Scripted([...says("Half").slice(0, -1), finish(reason)]);
    const client = await served(new ToolLoopAgent({ model }));
    const { task } = await client.sendMessage("Hi");
    expect(task?.status.state).toBe(`TASK_STATE_${state}`);
    expect(task?.status.message?.parts[0]?.text).toMatch(said);
  });

  test("reorders parts, omits unknown ones, and fails if an answer has no end", async () => {
    const [start, , end, done] = says("x");
    const delta = { type: "text-delta", id: "1", delta: "Late" };
    const nonsense = [delta, start, { type: "telepathy" }, end, end, done, delta].flatMap((part) => part ?? []);
    const model = new Scripted(nonsense, [delta]);
    const client = await served(new ToolLoopAgent({ model, maxRetries: 0 }));
    const { task } = await client.sendMessage("Hi");
    expect(task?.artifacts?.[0]?.parts).toMatchObject([{ text: "Late" }]);
    expect(task?.status.state).toBe("TASK_STATE_COMPLETED");
    expect((await client.sendMessage("Again")).task?.status.state).toBe("TASK_STATE_FAILED");
  });

  test("ends a loop of calls at stopWhen, even if the model repeats an id", async () => {
    const model = new Scripted(calls(["same", "pay", { amount: 1 }]));
    let paid = 0;
    const client = await served(
      new ToolLoopAgent({ model, tools: pay(async () => (paid += 1)), stopWhen: stepCountIs(4) }),
    );
    const { task } = await client.sendMessage("Hi");
    expect(task?.status.state).toBe("TASK_STATE_COMPLETED");
    expect([model.calls.length, paid]).toEqual([4, 4]);
  });

  test("passes the conversation and files to the model", async () => {
    const model = new Scripted(says("One"), says("Two"));
    const client = await served(new ToolLoopAgent({ model }));
    const conversation = client.conversation();
    await conversation.send("First");
    await conversation.send({
      parts: [{ text: "Second" }, { raw: btoa("png"), mediaType: "image/png", filename: "a.png" }],
    });
    const prompt = model.calls[1]?.prompt ?? [];
    expect(prompt.map(({ role }) => role)).toEqual(["user", "assistant", "user"]);
    expect(JSON.stringify(prompt)).toContain("image/png");
  });
});

test("creates the agent for a turn, with tools that are already steps", async () => {
  const model = new Scripted(calls(["c1", "pay", { amount: 5 }]), says("Paid"));
  const make: AISDKAgentFactory = async (durable, turn) => {
    const execute = (_: unknown, { toolCallId }: { toolCallId: string }) => turn.step(toolCallId, () => "receipt");
    const tools = { pay: ai7.tool({ inputSchema: ai7.jsonSchema({ type: "object" }), execute }) };
    return new ai7.ToolLoopAgent({ model: durable.model(model as unknown as LanguageModel), tools });
  };
  server = await serve(fromAISDK(make, card), { port: 0, logger: false, store: memoryStore() });
  const { task } = await (await connect(server.url)).sendMessage("Pay 5");
  expect(task?.artifacts?.[0]?.parts[0]?.text).toBe("Paid");
  expect(JSON.stringify(model.calls[1]?.prompt)).toContain("receipt");
});

test("tools that `prepareCall` adds are steps", async () => {
  const keys: unknown[] = [];
  const execute = (_: unknown, options: object): string => `${keys.push(idempotencyOf(options)?.key)}`;
  const extra = ai7.tool({ inputSchema: ai7.jsonSchema({ type: "object" }), execute });
  const model = new Scripted(calls(["c1", "extra", {}]), says("Done")) as unknown as LanguageModel;
  const prepareCall = (call: object): object => ({ ...call, tools: { extra } });
  const client = await served(new ai7.ToolLoopAgent({ model, prepareCall: prepareCall as never }));
  expect((await client.sendMessage("Hi")).task?.artifacts?.[0]?.parts[0]?.text).toBe("Done");
  expect(keys).toEqual([expect.stringMatching(/^[0-9a-f]{32}$/)]);
});

test("returns files of a V4 model as artifacts", async () => {
  const { ToolLoopAgent } = versions.find(({ name }) => name === "ai 7") ?? {};
  if (ToolLoopAgent === undefined) throw new Error("ai 7 is missing");
  const data = { type: "data", data: new TextEncoder().encode("bytes") };
  const file = { type: "file", mediaType: "image/png", data };
  const model = Object.assign(new Scripted([file, ...says("Done")]), { specificationVersion: "v4" });
  const client = await served(new ToolLoopAgent({ model }), { defaultOutputModes: ["*"] });
  const { task } = await client.sendMessage("Hi");
  expect(task?.artifacts).toMatchObject([{ parts: [{ raw: btoa("bytes") }] }, { parts: [{ text: "Done" }] }]);
});

test("rejects anything except an agent of AI SDK 6 or 7, and an agent without readable settings", () => {
  const other = { version: "agent-v2", tools: {}, stream: () => Promise.reject(new Error("never")) };
  const opaque = { ...other, version: "agent-v1" as const };
  expect(() => fromAISDK(other as unknown as AISDKAgent, card)).toThrow("needs an agent of ai >=6 <8");
  expect(() => fromAISDK(opaque, card)).toThrow("pass a function: fromAISDK((durable) =>");
});

test.each([
  [undefined, "found no agent"],
  ["openai/gpt-5", "found no agent"],
  [{ version: "agent-v2", stream() {} }, 'found an agent with version "agent-v2"'],
])("rejects %j instead of an agent", (agent, found) => {
  const make = () => fromAISDK(agent as unknown as AISDKAgent, card);
  expect(make).toThrow("fromAISDK() needs an agent of ai >=6 <8, such as new ToolLoopAgent({ … }), or a function that");
  expect(make).toThrow(found);
});
