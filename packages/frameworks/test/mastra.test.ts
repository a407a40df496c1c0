import { connect, type Client } from "@parley/a2a";
import { serve, type Server } from "@parley/node";
import { bearer } from "@parley/a2a/auth";
import { bearerToken } from "@parley/a2a/credentials";
import { memoryStore } from "@parley/server";
import { Mastra } from "@mastra/core";
import { Agent } from "@mastra/core/agent";
import { MockMemory } from "@mastra/core/memory";
import { InMemoryStore } from "@mastra/core/storage";
import { createTool } from "@mastra/core/tools";
import { createStep, createWorkflow } from "@mastra/core/workflows";
import { afterEach, describe, expect, test } from "vitest";
import * as z from "zod";
import { fromMastra, idempotencyOf, type MastraAgent } from "../src/mastra/index.ts";
import { gate } from "./gate.ts";
import { calls, finish, says, Scripted } from "./scripted.ts";

const card = { name: "Test", description: "A test", version: "1.0.0", skills: [] };

const servers: Server[] = [];
afterEach(() => Promise.all(servers.splice(0).map((server) => server.close())));

const Stock = Agent as unknown as new (settings: object) => MastraAgent;

function agentOf(model: Scripted, tools: object = {}, more: object = {}): MastraAgent {
  return new Stock({ id: "test", name: "Test", instructions: "Be brief", model, tools, ...more });
}

async function served(
  agent: MastraAgent,
  host: object = {},
  options: Parameters<typeof connect>[1] = {},
): Promise<Client> {
  const definition = { ...card, defaultInputModes: ["*"] };
  const server = await serve(fromMastra(agent, definition), { port: 0, logger: false, store: memoryStore(), ...host });
  servers.push(server);
  return connect(server.url, options);
}

interface Context {
  readonly abortSignal: AbortSignal;
  readonly agent: { readonly resumeData?: unknown; suspend(payload: unknown): Promise<unknown> };
}

type Execute = (input: { readonly amount: number }, context: Context) => Promise<unknown>;

const pay = (execute: Execute, more: object = {}): object => {
  const inputSchema = z.object({ amount: z.number() });
  return { pay: createTool({ id: "pay", description: "Pays", inputSchema, execute: execute as never, ...more }) };
};

async function statusesOf(client: Client, text: string): Promise<string[]> {
  const said: string[] = [];
  for await (const { statusUpdate } of client.sendStreamingMessage(text))
    said.push(String(statusUpdate?.status.message?.parts[0]?.text));
  return said;
}

test("streams text as an artifact, and reports usage and sources", async () => {
  const source = { type: "source", sourceType: "url", id: "s", url: "https://example.com/", title: "Example" };
  const model = new Scripted([source, ...says("Hello, ", "world")]);
  const client = await served(agentOf(model));
  const { task } = await client.sendMessage("Hi");
  expect(task?.artifacts).toMatchObject([
    { name: "answer", parts: [{ text: "Hello, world" }] },
    { name: "sources", parts: [{ data: { source: { url: "https://example.com/", title: "Example" } } }] },
  ]);
  expect(task?.status.state).toBe("TASK_STATE_COMPLETED");
  const ends: unknown[] = [];
  for await (const { statusUpdate } of client.sendStreamingMessage("Hi")) ends.push(statusUpdate?.metadata ?? []);
  expect(ends.flat().at(-1)).toMatchObject({
    "gen_ai.usage.input_tokens": 7,
    "gen_ai.usage.output_tokens": 11,
    "gen_ai.response.finish_reasons": ["stop"],
  });
});

test("runs tools with an idempotency key, and passes their results to the model", async () => {
  const model = new Scripted(calls(["c1", "pay", { amount: 5 }]), says("Paid"));
  const made: unknown[] = [];
  const client = await served(
    agentOf(
      model,
      pay(async (input, context) => {
        made.push(input, idempotencyOf(context));
        return { receipt: 1 };
      }),
    ),
  );
  expect(await statusesOf(client, "Pay 5")).toContain("Calling pay");
  expect(made).toEqual([{ amount: 5 }, { key: expect.any(String), uncertain: false, attempt: 1 }]);
  expect(JSON.stringify(model.calls[1]?.prompt)).toContain("receipt");
});

test("turns tool errors, unknown tools and invalid arguments into results that the model reads", async () => {
  const model = new Scripted(
    calls(["c1", "pay", { amount: 5 }], ["c2", "steal", {}], ["c3", "pay", '{"amount":']),
    says("Sorry \ud800"),
  );
  const client = await served(
    agentOf(
      model,
      pay(() => Promise.reject(new Error("No funds"))),
    ),
  );
  const { task } = await client.sendMessage("Pay 5");
  expect(task?.status.state).toBe("TASK_STATE_COMPLETED");
  const prompt = JSON.stringify(model.calls[1]?.prompt);
  expect(prompt).toContain("No funds");
  expect(prompt).toContain("steal");
  expect(task?.artifacts?.[0]?.parts[0]?.text).toMatch(/^Sorry .$/);
});

describe("approvals", () => {
  const paying = async (...amounts: readonly number[]) => {
    const wanted = amounts.map((amount, at) => [`c${at + 1}`, "pay", { amount }] as const);
    const model = new Scripted(calls(...wanted), says("Thanks"));
    const paid: unknown[] = [];
    const execute = async (input: unknown): Promise<string> => `paid ${paid.push(input)}`;
    const tools = pay(execute, { requireApproval: true });
    const client = await served(agentOf(model, tools));
    const conversation = client.conversation();
    const { task } = await conversation.send("Pay");
    const parts = task?.status.message?.parts ?? [];
    return { model, paid, conversation, parts };
  };

  test("ask with the tool, arguments, digest and form, and run the tool after yes", async () => {
    const { model, paid, conversation, parts } = await paying(5);
    expect(parts).toMatchObject([
      { text: 'Approve pay {"amount":5}?' },
      { data: { approvals: [{ toolCallId: "c1", toolName: "pay", input: { amount: 5 } }] } },
      { mediaType: "application/schema+json", data: { required: ["approved", "digest"] } },
    ]);
    expect(paid).toEqual([]);
    const { task } = await conversation.send("yes");
    expect(task?.artifacts?.[0]?.parts[0]?.text).toBe("Thanks");
    expect(paid).toEqual([{ amount: 5 }]);
    expect(model.calls).toHaveLength(2);
  });

  test("ask again after another digest or another text", async () => {
    const { paid, conversation } = await paying(5);
    for (const parts of [[{ data: { approved: true, digest: "00" } }], [{ text: "What is it for?" }]]) {
      const { task } = await conversation.send({ parts });
      expect(task?.status.message?.parts[0]?.text).toBe('Approve pay {"amount":5}?');
    }
    expect(paid).toEqual([]);
  });

  test("ask about one call after the other, and tell the model the reason for a denial", async () => {
    const { model, paid, conversation, parts } = await paying(5, 6);
    const digestIn = ([, part]: typeof parts): string => {
      const { approvals } = (part?.data ?? {}) as { approvals?: { digest: string }[] };
      return approvals?.[0]?.digest ?? "";
    };
    const next = await conversation.send({ parts: [{ data: { approved: true, digest: digestIn(parts) } }] });
    const asked = next.task?.status.message?.parts ?? [];
    expect(asked[0]?.text).toBe('Approve pay {"amount":6}?');
    const no = { approved: false, reason: "Too dear", digest: digestIn(asked) };
    const { task } = await conversation.send({ parts: [{ data: no }] });
    expect(task?.status.state).toBe("TASK_STATE_COMPLETED");
    expect(paid).toEqual([{ amount: 5 }]);
    expect(JSON.stringify(model.calls[1]?.prompt)).toContain("Too dear");
  });

  test("ignore a yes that was sent before the question", async () => {
    const model = new Scripted(...[5, 6].map((amount, at) => calls([`c${at}`, "pay", { amount }])), says("Thanks"));
    const paid: unknown[] = [];
    const held = gate();
    const execute = async (input: unknown): Promise<string> => {
      paid.push(input);
      await held.opened;
      return "paid";
    };
    const client = await served(agentOf(model, pay(execute, { requireApproval: true })));
    const id = (await client.sendMessage("Pay")).task?.id ?? "";
    const send = (text: string) =>
      client.sendMessage({
        message: { messageId: crypto.randomUUID(), taskId: id, parts: [{ text }] },
        configuration: { returnImmediately: true },
      });
    await send("yes");
    await expect.poll(() => paid.length).toBe(1);
    await send("yes");
    held.open();
    await expect.poll(async () => (await client.getTask(id)).history?.length).toBeGreaterThan(5);
    const { status } = await client.getTask(id);
    expect(status.message?.parts[0]?.text).toBe('Approve pay {"amount":6}?');
    expect(paid).toEqual([{ amount: 5 }]);
  });

  test("store each message and each result once, however often they ask", async () => {
    const store = memoryStore();
    const append = store.append.bind(store);
    let [bytes, most] = [0, 0];
    store.append = (items, ...more) => {
      bytes = JSON.stringify(items).length;
      most = Math.max(most, bytes);
      return append(items, ...more);
    };
    const text = Array.from({ length: 20_000 }, (_, at) => at).join(" ");
    const model = new Scripted(...[5, 6, 7].map((amount) => calls([`c${amount}`, "pay", { amount }])), says("Thanks"));
    const tools = pay(async () => text, { requireApproval: true });
    const conversation = (await served(agentOf(model, tools), { store })).conversation();
    await conversation.send("Pay");
    for (let yes = 0; yes < 3; yes += 1) await conversation.send("yes");
    expect(most).toBeLessThan(text.length * 4);
  });

  test("are answered on another server, and leave the application's storage unchanged", async () => {
    const paid: unknown[] = [];
    const model = new Scripted(calls(["c1", "pay", { amount: 5 }]), says("Thanks"));
    const tools = pay(async (input) => `paid ${paid.push(input)}`, { requireApproval: true });
    const storage = new InMemoryStore();
    const own = (): MastraAgent => {
      const agent = agentOf(model, tools);
      return new Mastra({ agents: { agent: agent as Agent }, storage, logger: false }).getAgent("agent");
    };
    const store = memoryStore();
    const first = (await served(own(), { store })).conversation();
    const { task } = await first.send("Pay");
    const runs = await (await storage.getStore("workflows"))?.listWorkflowRuns({});
    expect(runs?.total).toBe(0);
    const second = (await served(own(), { store })).conversation({
      taskId: task?.id ?? "",
      contextId: task?.contextId ?? "",
    });
    expect((await second.send("yes")).task?.artifacts?.[0]?.parts[0]?.text).toBe("Thanks");
    expect([paid, model.calls.length]).toEqual([[{ amount: 5 }], 2]);
  });
});

test("a question from an agent in `agents` is answered on another server", async () => {
  const paid: unknown[] = [];
  const inner = new Scripted(calls(["i1", "pay", { amount: 5 }]), says("It is paid"));
  const outer = new Scripted(calls(["c1", "agent-bursar", { prompt: "Pay 5", resourceId: "bob" }]), says("Thanks"));
  const scopes: unknown[] = [];
  const execute = async (input: object, context: { agent: object }): Promise<string> => {
    scopes.push(Reflect.get(context.agent, "resourceId"));
    return `paid ${paid.push(input)}`;
  };
  const own = (): MastraAgent => {
    const bursar = agentOf(inner, pay(execute, { requireApproval: true }), { id: "bursar" });
    return agentOf(outer, {}, { agents: { bursar }, memory: new MockMemory({ storage: new InMemoryStore() }) });
  };
  const store = memoryStore();
  const { task } = await (await served(own(), { store })).conversation().send("Pay");
  expect(task?.status.message?.parts[0]?.text).toBe('Approve pay {"amount":5}?');
  const ids = { taskId: task?.id ?? "", contextId: task?.contextId ?? "" };
  const done = await (await served(own(), { store })).conversation(ids).send("yes");
  expect(done.task?.artifacts?.[0]?.parts[0]?.text).toBe("Thanks");
  expect(paid).toEqual([{ amount: 5 }]);
  // The model named another resource.
  expect(scopes).toEqual([`[null,"anonymous","${ids.contextId}"]-bursar`]);
  expect([inner.calls.length, outer.calls.length]).toEqual([2, 2]);
  expect(JSON.stringify(outer.calls[1]?.prompt)).toContain("It is paid");
});

test("a question from a workflow is answered on another server", async () => {
  const model = new Scripted(calls(["c1", "workflow-order", { inputData: { amount: 5 } }]), says("Thanks"));
  const made: unknown[] = [];
  const confirm = createStep({
    id: "confirm",
    inputSchema: z.object({ amount: z.number() }),
    outputSchema: z.object({ done: z.boolean() }),
    suspendSchema: z.object({ why: z.string() }),
    resumeSchema: z.object({ account: z.string() }),
    execute: async ({ inputData, resumeData, suspend }) => {
      if (resumeData === undefined) return suspend({ why: "From which account?" });
      made.push(inputData, resumeData);
      return { done: true };
    },
  });
  const own = (): MastraAgent => {
    const { inputSchema, outputSchema } = confirm;
    const order = createWorkflow({ id: "order", description: "Orders", inputSchema, outputSchema })
      .then(confirm)
      .commit();
    return agentOf(model, {}, { workflows: { order } });
  };
  const store = memoryStore();
  const { task } = await (await served(own(), { store })).conversation().send("Order");
  expect(task?.status.message?.parts[0]?.text).toBe("workflow-order asks: From which account?");
  const ids = { taskId: task?.id ?? "", contextId: task?.contextId ?? "" };
  const done = await (await served(own(), { store })).conversation(ids).send("main");
  expect(done.task?.artifacts?.[0]?.parts[0]?.text).toBe("Thanks");
  expect(made).toEqual([{ amount: 5 }, { account: "main" }]);
});

describe("a tool that suspends", () => {
  const asking = async (resumeSchema: z.ZodType) => {
    const model = new Scripted(calls(["c1", "pay", { amount: 5 }]), says("Thanks"));
    const given: unknown[] = [];
    const execute: Execute = async (_, { agent: { resumeData, suspend } }) => {
      if (resumeData === undefined) return suspend({ why: "From which account?" });
      given.push(resumeData);
      return "paid";
    };
    const suspendSchema = z.object({ why: z.string() });
    const client = await served(agentOf(model, pay(execute, { suspendSchema, resumeSchema })));
    const conversation = client.conversation();
    const { task } = await conversation.send("Pay");
    expect(task?.status.state).toBe("TASK_STATE_INPUT_REQUIRED");
    const parts = task?.status.message?.parts ?? [];
    const { suspended } = (parts[1]?.data ?? {}) as { suspended?: { digest: string } };
    return { model, given, conversation, parts, digest: suspended?.digest ?? "" };
  };
  const account = z.object({ account: z.string().regex(/^[a-z]+$/), note: z.string().optional() });

  test("asks with its payload, its arguments and a form, and is resumed with the data", async () => {
    const { model, given, conversation, parts, digest } = await asking(account);
    expect(parts).toMatchObject([
      { text: "pay asks: From which account?" },
      { data: { suspended: { toolName: "pay", input: { amount: 5 }, payload: { why: "From which account?" } } } },
      { data: { properties: { account: {}, note: {}, digest: { const: digest } }, required: ["account", "digest"] } },
    ]);
    const { task } = await conversation.send({ parts: [{ data: { account: "main", note: "n", digest } }] });
    expect(task?.artifacts?.[0]?.parts[0]?.text).toBe("Thanks");
    expect(given).toEqual([{ account: "main", note: "n" }]);
    expect(model.calls).toHaveLength(2);
  });

  test("is resumed with a text if its form has one required field", async () => {
    const { given, conversation } = await asking(account);
    await conversation.send("main");
    expect(given).toEqual([{ account: "main" }]);
  });

  test("is resumed with a value that is not an object", async () => {
    const { given, conversation, digest } = await asking(z.number());
    expect((await conversation.send("five")).task?.status.state).toBe("TASK_STATE_INPUT_REQUIRED");
    await conversation.send({ parts: [{ data: { answer: 5, digest } }] });
    expect(given).toEqual([5]);
  });

  test("is not resumed by the model, even if its arguments contain resumeData", async () => {
    const model = new Scripted(calls(["c1", "pay", { amount: 5, resumeData: { account: "main" } }]), says("Thanks"));
    const given: unknown[] = [];
    const execute: Execute = async (_, { agent: { resumeData, suspend } }) =>
      resumeData === undefined ? suspend({ why: "From which account?" }) : given.push(resumeData);
    const client = await served(agentOf(model, pay(execute, { resumeSchema: account })));
    expect((await client.sendMessage("Pay")).task?.status.state).toBe("TASK_STATE_INPUT_REQUIRED");
    expect(given).toEqual([]);
  });

  test("asks again after an answer that does not fit or answers another question", async () => {
    const { given, conversation, digest } = await asking(account);
    const wrong = await conversation.send({ parts: [{ data: { account: "12", digest } }] });
    expect(wrong.task?.status.message?.parts[0]?.text).toMatch(/^pay asks: .*\nThe answer does not fit: account: /);
    const other = await conversation.send({ parts: [{ data: { account: "main", digest: "00" } }] });
    expect(other.task?.status.state).toBe("TASK_STATE_INPUT_REQUIRED");
    expect(given).toEqual([]);
  });
});

describe("memory", () => {
  const storage = new InMemoryStore();
  const memory = new MockMemory({ storage });

  /** The owner of each thread in the memory. */
  async function owners(): Promise<Record<string, string>> {
    const { threads = [] } = (await (await storage.getStore("memory"))?.listThreads({})) ?? {};
    return Object.fromEntries(threads.map(({ id, resourceId }) => [id, resourceId]));
  }

  test("belongs to the authenticated caller, whatever the message says", async () => {
    const model = new Scripted(says("One"), says("Two"));
    const authenticator = bearer({ "secret-of-ann": { subject: "ann", organization: "acme" } });
    const credentials = [bearerToken("secret-of-ann")];
    const client = await served(agentOf(model, {}, { memory }), { authenticator }, { credentials });
    const conversation = client.conversation();
    await conversation.send({
      parts: [{ text: "First" }],
      metadata: { resourceId: "bob", memory: { resource: "bob" } },
    });
    await conversation.send("Second");
    expect(await owners()).toEqual({ [String(conversation.contextId)]: '["acme","ann"]' });
    const prompt = model.calls[1]?.prompt ?? [];
    expect(prompt.map(({ role }) => role)).toEqual(["system", "user", "assistant", "user"]);
  });

  test("of anonymous callers belongs to the conversation", async () => {
    const client = await served(agentOf(new Scripted(says("One")), {}, { memory }));
    const contextId = String((await client.sendMessage("First")).task?.contextId);
    expect(await owners()).toMatchObject({ [contextId]: `[null,"anonymous","${contextId}"]` });
  });
});

test("returns an object as data, and fails without one", async () => {
  const model = new Scripted(says('{"city":', '"Basel"}'), says("no"));
  const structuredOutput = { schema: z.object({ city: z.string() }), errorStrategy: "warn" };
  const client = await served(agentOf(model, {}, { defaultOptions: { structuredOutput } }));
  const { task } = await client.sendMessage("Where?");
  expect(task?.artifacts).toMatchObject([{ name: "answer", parts: [{ data: { city: "Basel" } }] }]);
  expect((await client.sendMessage("Where?")).task?.status.state).toBe("TASK_STATE_FAILED");
});

test.each([
  ["length", "COMPLETED", /incomplete/],
  ["content-filter", "FAILED", /withheld/],
  // Mastra turns it into an error, which callers do not see.
  ["error", "FAILED", /The agent failed/],
])("reports the finish reason %s", async (reason, state, said) => {
  const client = await served(agentOf(new Scripted([...says("Half").slice(0, -1), finish(reason)])));
  const { task } = await client.sendMessage("Hi");
  expect(task?.status.state).toBe(`TASK_STATE_${state}`);
  expect(task?.status.message?.parts[0]?.text).toMatch(said);
});

test("reorders parts, omits unknown ones, and fails if an answer has no end", async () => {
  const [start, , end, done] = says("x");
  const delta = { type: "text-delta", id: "1", delta: "Late" };
  const nonsense = [delta, start, { type: "telepathy" }, end, end, done, delta].flatMap((part) => part ?? []);
  const client = await served(agentOf(new Scripted(nonsense, [delta]), {}, { maxRetries: 0 }));
  const { task } = await client.sendMessage("Hi");
  expect(task?.artifacts?.[0]?.parts).toMatchObject([{ text: "Late" }]);
  expect(task?.status.state).toBe("TASK_STATE_COMPLETED");
  expect((await client.sendMessage("Again")).task?.status.state).toBe("TASK_STATE_FAILED");
});

test("ends a loop of calls at maxSteps, even if the model repeats an id", async () => {
  const model = new Scripted(calls(["same", "pay", { amount: 1 }]));
  let paid = 0;
  const tools = pay(async () => (paid += 1));
  const client = await served(agentOf(model, tools, { defaultOptions: { maxSteps: 4 } }));
  const { task } = await client.sendMessage("Hi");
  expect(task?.status.state).toBe("TASK_STATE_COMPLETED");
  expect([model.calls.length, paid]).toEqual([4, 4]);
});

test("fails for a tool without execute()", async () => {
  const { pay: tool } = pay(async () => 1) as { pay: object };
  const model = new Scripted(calls(["c1", "pay", { amount: 1 }]));
  const client = await served(agentOf(model, { pay: { ...tool, execute: undefined } }));
  expect((await client.sendMessage("Hi")).task?.status.message?.parts[0]?.text).toBe(
    "The agent cannot run the tool pay",
  );
});

test("passes the conversation and files to an agent without memory", async () => {
  const model = new Scripted(says("One"), says("Two"));
  const conversation = (await served(agentOf(model))).conversation();
  await conversation.send("First");
  await conversation.send({
    parts: [{ text: "Second" }, { raw: btoa("png"), mediaType: "image/png", filename: "a.png" }],
  });
  const prompt = model.calls[1]?.prompt ?? [];
  expect(prompt.map(({ role }) => role)).toEqual(["system", "user", "assistant", "user"]);
  expect(JSON.stringify(prompt)).toContain("image/png");
});

test("rejects anything except an agent", () => {
  const other = {
    id: "x",
    stream: () => Promise.reject(new Error("never")),
    resumeStream: () => Promise.reject(new Error("never")),
  };
  expect(() => fromMastra(other as unknown as MastraAgent, card)).toThrow(
    "fromMastra() needs an Agent of @mastra/core >=1 <2; this one lacks __fork, convertTools",
  );
});
