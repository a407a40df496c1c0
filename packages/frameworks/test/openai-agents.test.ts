import { Agent, setDefaultModelProvider, tool, type AgentOutputType, type Model } from "@openai/agents";
import { connect, type Client } from "@parley/a2a";
import { serve, type Server } from "@parley/node";
import { memoryStore, type Store } from "@parley/server";
import { afterEach, describe, expect, test, vi } from "vitest";
import * as z from "zod";
import { fromOpenAIAgent, type OpenAIAgentDefinition } from "../src/openai-agents/index.ts";
import { calls, done, says, saysAndCalls, Scripted } from "./scripted-openai.ts";

const card = { name: "Test", description: "A test", version: "1.0.0", skills: [] };

let server: Server | undefined;
afterEach(() => server?.close());

type More = Partial<OpenAIAgentDefinition>;

/** Everything written to the store of the last server, as JSON. */
let written: string[] = [];

function recordingStore(): Store {
  written = [];
  const store = memoryStore();
  const append = store.append.bind(store);
  return Object.assign(store, {
    append: (...all: Parameters<Store["append"]>) => {
      written.push(JSON.stringify(all));
      return append(...all);
    },
  });
}

async function served<Output extends AgentOutputType>(agent: Agent<unknown, Output>, more: More = {}): Promise<Client> {
  server = await serve(fromOpenAIAgent(agent, { ...card, defaultInputModes: ["*"], ...more }), {
    port: 0,
    logger: false,
    store: recordingStore(),
  });
  return connect(server.url);
}

/** Texts of progress and states, in order. */
async function saidBy(client: Client, text: string): Promise<readonly (string | undefined)[]> {
  const said: (string | undefined)[] = [];
  for await (const { statusUpdate } of client.sendStreamingMessage(text))
    said.push(statusUpdate?.status.message?.parts[0]?.text);
  return said.filter((each) => each !== undefined);
}

const parameters = z.object({ amount: z.number() });

function pay(execute: (input: { amount: number }) => unknown, more: object = {}) {
  return tool({ name: "pay", description: "Pays", parameters, execute: async (input) => execute(input), ...more });
}

const agentOf = (model: Model, more: object = {}): Agent => new Agent({ name: "Test", model, ...more });

test("streams text as an artifact, and reports usage", async () => {
  const model = new Scripted(says("Hello, ", "world"));
  const client = await served(agentOf(model, { instructions: "Be brief" }));
  const ends: unknown[] = [];
  const chunks: unknown[] = [];
  for await (const { statusUpdate, artifactUpdate } of client.sendStreamingMessage("Hi")) {
    ends.push(statusUpdate?.metadata ?? []);
    if (artifactUpdate !== undefined) chunks.push(artifactUpdate.artifact.name, artifactUpdate.artifact.parts[0]?.text);
  }
  expect(chunks.filter((each) => each !== "answer" && each !== undefined).join("")).toBe("Hello, world");
  expect(ends.flat().at(-1)).toEqual({ "gen_ai.usage.input_tokens": 7, "gen_ai.usage.output_tokens": 11 });
  expect(model.requests[0]).toMatchObject({
    systemInstructions: "Be brief",
    input: [{ role: "user", content: [{ type: "input_text", text: "Hi" }] }],
    tracing: false,
  });
});

test("runs tools, and passes their results to the model", async () => {
  const model = new Scripted(saysAndCalls(["I ", "pay"], ["c1", "pay", { amount: 5 }]), says("Paid"));
  const inputs: unknown[] = [];
  const tools = [pay((input) => ({ receipt: inputs.push(input) }))];
  const client = await served(agentOf(model, { tools }));
  expect(await saidBy(client, "Pay 5")).toContain("Calling pay");
  expect(inputs).toEqual([{ amount: 5 }]);
  expect(JSON.stringify(model.requests[1]?.input)).toContain("receipt");
});

test("turns tool errors, unknown tools and invalid arguments into results that the model reads", async () => {
  const wrong = calls(
    ["c1", "pay", { amount: 5 }],
    ["c2", "steal", {}],
    ["c3", "pay", '{"amount":'],
    ["c4", "pay", {}],
  );
  const model = new Scripted(wrong, says("Sorry"));
  const tools = [
    pay(() => {
      throw new Error("No funds");
    }),
  ];
  const client = await served(agentOf(model, { tools }));
  const { task } = await client.sendMessage("Pay 5");
  expect(task?.artifacts?.map(({ parts }) => parts[0]?.text)).toEqual(["Sorry"]);
  const results = ((model.requests[1]?.input ?? []) as { type: string }[]).filter(
    ({ type }) => type === "function_call_result",
  );
  const texts = results.map((result) => JSON.stringify(result)).toSorted();
  expect(texts).toHaveLength(4);
  expect(texts.join("\n")).toMatch(
    /running the tool[^]*parsing tool arguments[^]*running the tool[^]*steal.*not found/,
  );
});

test("tells the model that a tool hangs", async () => {
  const model = new Scripted(calls(["c1", "pay", { amount: 5 }]), says("Too slow"));
  const tools = [pay(() => new Promise<never>(() => {}), { timeoutMs: 10 })];
  await (await served(agentOf(model, { tools }))).sendMessage("Pay 5");
  expect(JSON.stringify(model.requests[1]?.input)).toContain("timed out after 10ms");
});

describe("approvals", () => {
  const paying = async (...amounts: readonly number[]) => {
    const wanted = amounts.map((amount, at) => [`c${at + 1}`, "pay", { amount }] as const);
    const model = new Scripted(calls(...wanted), says("Thanks"));
    const paid: unknown[] = [];
    const tools = [pay((input) => paid.push(input), { needsApproval: true })];
    const secret = { token: "s3cret", self: {} };
    secret.self = secret;
    const client = await served(agentOf(model, { tools }), { context: () => secret });
    const conversation = client.conversation();
    const { task } = await conversation.send("Pay");
    expect(task?.status.state).toBe("TASK_STATE_INPUT_REQUIRED");
    const parts = task?.status.message?.parts ?? [];
    const { approvals } = (parts[1]?.data ?? {}) as { approvals: { digest: string }[] };
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
    expect(model.requests).toHaveLength(2);
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
    expect(JSON.stringify(model.requests[1]?.input)).toContain("Too dear");
  });
});

describe("other agents", () => {
  test("hands over to durable agents", async () => {
    const refunds = agentOf(new Scripted(calls(["c2", "pay", { amount: 5 }]), says("Refunded")), {
      name: "Refunds",
      tools: [pay(() => "paid", { needsApproval: true })],
    });
    const model = new Scripted(calls(["c1", "transfer_to_Refunds", {}]));
    const client = await served(agentOf(model, { handoffs: [refunds] }));
    expect(await saidBy(client, "Refund")).toEqual(["Handing over to Refunds", 'Approve pay {"amount":5}?']);
    const [open] = (await client.listTasks({})).tasks ?? [];
    const { task } = await client.sendMessage({
      message: { messageId: "2", taskId: open?.id ?? "", parts: [{ text: "yes" }] },
    });
    expect(task?.artifacts?.[0]?.parts[0]?.text).toBe("Refunded");
  });

  test("calls an agent as a tool, whose tools ask too", async () => {
    const inner = new Scripted(calls(["i1", "pay", { amount: 5 }]), says("Inner is paid"));
    const paid: unknown[] = [];
    const helper = agentOf(inner, {
      name: "Helper",
      tools: [pay((input) => paid.push(input), { needsApproval: true })],
    });
    const outer = new Scripted(calls(["o1", "helper", { input: "Pay 5" }]), says("Done"));
    const tools = [helper.asTool({ toolName: "helper", toolDescription: "Helps" })];
    const client = await served(agentOf(outer, { tools }), { context: () => ({ token: "s3cret" }) });
    const conversation = client.conversation();
    const asked = await conversation.send("Pay");
    expect(asked.task?.status.message?.parts[0]?.text).toBe('Approve pay {"amount":5}?');
    const { task } = await conversation.send("yes");
    expect(task?.artifacts?.[0]?.parts[0]?.text).toBe("Done");
    expect(written.join("\n")).toContain("pendingAgentToolRuns");
    expect(written.join("\n")).not.toContain("s3cret");
    expect([paid, inner.requests.length, outer.requests.length]).toEqual([[{ amount: 5 }], 2, 2]);
    expect(JSON.stringify(outer.requests[1]?.input)).toContain("Inner is paid");
  });

  test("streams an agent used as a tool, and also hands over to it", async () => {
    const inner = new Scripted(says("Looked up"), calls(["i2", "pay", { amount: 5 }]), says("Paid"));
    const helper = agentOf(inner, { name: "Helper", tools: [pay(() => "paid", { needsApproval: true })] });
    const seen: string[] = [];
    const onStream = ({ event }: { event: { type: string } }): void => void seen.push(event.type);
    const tools = [helper.asTool({ toolName: "helper", toolDescription: "Helps", onStream })];
    const outer = new Scripted(calls(["o1", "helper", { input: "Look" }]), calls(["o2", "transfer_to_Helper", {}]));
    const client = await served(agentOf(outer, { tools, handoffs: [helper] }));
    const conversation = client.conversation();
    const asked = await conversation.send("Pay");
    expect(asked.task?.status.message?.parts[0]?.text).toBe('Approve pay {"amount":5}?');
    const { task } = await conversation.send("yes");
    expect(task?.artifacts?.map(({ parts }) => parts[0]?.text)).toEqual(["Paid"]);
    expect(seen).toContain("raw_model_stream_event");
    expect(inner.requests).toHaveLength(3);
  });

  test("finds models by name at the run's provider and at the default provider", async () => {
    const model = new Scripted(says("Named"));
    const names: unknown[] = [];
    const modelProvider = { getModel: (name?: string) => (names.push(name), model) };
    const client = await served(new Agent({ name: "Test", model: "gpt-test" }), { runConfig: { modelProvider } });
    const { task } = await client.sendMessage("Hi");
    expect(task?.artifacts?.[0]?.parts[0]?.text).toBe("Named");
    setDefaultModelProvider(modelProvider);
    await server?.close();
    const other = await served(new Agent({ name: "Test", model: "gpt-default" }));
    expect((await other.sendMessage("Hi")).task?.artifacts?.[0]?.parts[0]?.text).toBe("Named");
    expect(names).toEqual(["gpt-test", "gpt-default"]);
  });
});

describe("outcomes", () => {
  test("returns a structured output as data", async () => {
    const agent = new Agent({
      name: "Test",
      model: new Scripted(says('{"city":', '"Basel"}')),
      outputType: z.object({ city: z.string() }),
    });
    const { task } = await (await served(agent)).sendMessage("Where?");
    expect(task?.artifacts).toMatchObject([{ name: "answer", parts: [{ data: { city: "Basel" } }] }]);
  });

  const trips = { name: "No", execute: async () => ({ tripwireTriggered: true, outputInfo: {} }) };
  const wrong = new Scripted(says("Half"));
  const repeats = new Scripted(calls(["same", "pay", { amount: 1 }]));
  test.each<[string, object, string]>([
    ["an input guardrail", { inputGuardrails: [trips] }, "A guardrail rejected the message"],
    ["an output guardrail", { outputGuardrails: [trips] }, "A guardrail withheld the answer"],
    [
      "an output that does not fit",
      { outputType: z.object({ city: z.string() }) },
      "The model gave an answer that the agent cannot use",
    ],
    [
      "a model that repeats itself",
      { model: repeats, tools: [pay(() => "paid")] },
      "The agent exceeded its limit of model calls",
    ],
  ])("fails for %s", async (_, more, said) => {
    const { task } = await (await served(agentOf(wrong, more), { maxTurns: 3 })).sendMessage("Hi");
    expect(task?.status.state).toBe("TASK_STATE_FAILED");
    expect(task?.status.message?.parts[0]?.text).toBe(said);
    expect(JSON.stringify(task?.artifacts ?? [])).not.toContain("Half");
  });

  test("shows a text after its guardrail, and the result of a tool that ends the run", async () => {
    const passes = { name: "Yes", execute: async () => ({ tripwireTriggered: false, outputInfo: {} }) };
    const guarded = await served(agentOf(new Scripted(says("Fine")), { outputGuardrails: [passes] }));
    expect((await guarded.sendMessage("Hi")).task?.artifacts?.[0]?.parts[0]?.text).toBe("Fine");
    await server?.close();
    const model = new Scripted(calls(["c1", "pay", { amount: 1 }]));
    const agent = agentOf(model, { tools: [pay(() => "paid")], toolUseBehavior: "stop_on_first_tool" });
    const { task } = await (await served(agent)).sendMessage("Hi");
    expect(task?.artifacts?.[0]?.parts[0]?.text).toBe("paid");
  });

  test("shows reasoning on request, and provider tools", async () => {
    const [end] = says("Yes").slice(-1);
    const output = end?.type === "response_done" ? end.response.output : [];
    const answer = done(
      { type: "reasoning", content: [{ type: "input_text", text: "Hm" }] },
      { type: "hosted_tool_call", name: "web_search_call", status: "completed" },
      ...output,
    );
    const client = await served(agentOf(new Scripted([answer])), { reasoning: true });
    expect(await saidBy(client, "Hi")).toEqual(["Hm", "Calling web_search_call"]);
  });
});

describe("bad models", () => {
  test("stops a model whose answer never ends", async () => {
    let sent = 0;
    const model = new Scripted(async function* () {
      for (; sent < 1000; sent += 1) yield { type: "output_text_delta", delta: "x".repeat(10_000) } as const;
    });
    expect((await (await served(agentOf(model))).sendMessage("Hi")).task?.status.state).toBe("TASK_STATE_FAILED");
    expect(sent).toBeLessThan(40);
  });

  test.each([
    ["ends without a response", [{ type: "output_text_delta", delta: "Half" }]],
    ["answers nonsense", [{ type: "telepathy" }, { type: "response_done", response: { id: 1, output: "?" } }]],
    ["has no output", []],
  ])("fails for a model that %s", async (_, events) => {
    const client = await served(agentOf(new Scripted(events as never)), { maxTurns: 2 });
    expect((await client.sendMessage("Hi")).task?.status.state).toBe("TASK_STATE_FAILED");
  });

  test("shows text that was not streamed, keeps streamed text that differs, and replaces lone surrogates", async () => {
    const whole = says("Not streamed").slice(-1);
    const other = [{ type: "output_text_delta", delta: "Streamed" } as const, ...says("Other").slice(-1)];
    const half = says("a\ud83d", "b");
    const client = await served(agentOf(new Scripted(whole, other, half)));
    const texts: unknown[] = [];
    for (const text of ["1", "2", "3"]) {
      const { task } = await client.sendMessage(text);
      expect(task?.status.state).toBe("TASK_STATE_COMPLETED");
      texts.push(task?.artifacts?.map(({ parts }) => parts.map((part) => part.text).join("")));
    }
    expect(texts).toEqual([["Not streamed"], ["Streamed", "Other"], ["a\ufffdb"]]);
  });
});

test("passes the conversation and files to the model", async () => {
  const model = new Scripted(says("One"), says("Two"));
  const client = await served(agentOf(model));
  const conversation = client.conversation();
  await conversation.send("First");
  const file = { raw: btoa("%PDF"), mediaType: "application/pdf", filename: "a.pdf" };
  await conversation.send({ parts: [{ text: "Second" }, { raw: btoa("png"), mediaType: "image/png" }, file] });
  expect(model.requests[1]?.input).toMatchObject([
    { role: "user", content: [{ type: "input_text", text: "First" }] },
    { role: "assistant", content: [{ type: "output_text", text: "One" }] },
    {
      role: "user",
      content: [
        { type: "input_text", text: "Second" },
        { type: "input_image", image: "data:image/png;base64,cG5n" },
        { type: "input_file", file: "data:application/pdf;base64,JVBERg==", filename: "a.pdf" },
      ],
    },
  ]);
});

test("sends no traces, even with a key in the environment", async () => {
  const fetched = vi.spyOn(globalThis, "fetch");
  const client = await served(agentOf(new Scripted(says("Hi"))));
  vi.stubEnv("OPENAI_API_KEY", "sk-test");
  await client.sendMessage("Hi");
  const { getGlobalTraceProvider } = await import("@openai/agents");
  await getGlobalTraceProvider().forceFlush();
  const urls = fetched.mock.calls.map(([url]) => new Request(url).url);
  expect(urls.filter((url) => url.includes("openai"))).toEqual([]);
  vi.unstubAllEnvs();
  fetched.mockRestore();
});

test("rejects anything except an agent", () => {
  expect(() => fromOpenAIAgent({} as Agent, card)).toThrow("needs an Agent of @openai/agents >=0.17 <0.21");
});
