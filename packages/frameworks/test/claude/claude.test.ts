import { connect, type Client, type Task } from "@parley/a2a";
import { serve, type Server } from "@parley/node";
import { memoryStore, type Turn } from "@parley/server";
import { afterEach, describe, expect, onTestFinished, test, vi } from "vitest";
import { fromClaude } from "../../src/claude/index.ts";
import { Session } from "../../src/claude/session.ts";
import { checkPeer } from "../../src/shared/peer.ts";
import { gate } from "../gate.ts";
import { scriptedQuery, usage, type Asked, type Block, type Options, type Script } from "./scripted.ts";

const card = { name: "Test", description: "A test", version: "1.0.0", skills: [] };

let server: Server | undefined;
afterEach(() => server?.close());

async function served(script: Script, more: object = {}): Promise<Client> {
  const definition = { ...card, defaultInputModes: ["*"], ...more };
  const agent = fromClaude(scriptedQuery(script), definition);
  server = await serve(agent, { port: 0, logger: false, store: memoryStore() });
  return connect(server.url);
}

const says = (text: string): Block => ({ type: "text", text });
const calls = (id: string, name: string, input: Record<string, unknown>): Block => ({
  type: "tool_use",
  id,
  name,
  input,
});

const textsOf = (task: Task | undefined): unknown =>
  task?.artifacts?.map(({ parts }) => parts.map(({ text }) => text).join(""));
const statusOf = (task: Task | undefined): unknown => task?.status.message?.parts[0]?.text;

/** A model that gives its answers in order. */
function inOrder(...answers: readonly (readonly Block[])[]): { model: Script["model"]; asked: Asked[] } {
  const asked: Asked[] = [];
  return { asked, model: (call) => answers[asked.push(call) - 1] ?? [says("Nothing left")] };
}

test("streams text as an artifact, shows thinking and tools as progress, and reports usage", async () => {
  const script = inOrder(
    [{ type: "thinking", thinking: "Hm" }, says("Let me look."), calls("c1", "look", {})],
    [says("Hello, world")],
  );
  const client = await served(
    { ...script, tool: () => "found" },
    { reasoning: true, options: { allowedTools: ["look"] } },
  );
  const said: unknown[] = [];
  let ended: unknown;
  for await (const { statusUpdate } of client.sendStreamingMessage("Hi")) {
    said.push(statusUpdate?.status.message?.parts[0]?.text);
    ended = statusUpdate?.metadata ?? ended;
  }
  expect(said).toEqual(expect.arrayContaining(["Hm", "Calling look"]));
  expect(ended).toEqual({
    "gen_ai.response.finish_reasons": ["end_turn"],
    "gen_ai.usage.input_tokens": usage.input_tokens,
    "gen_ai.usage.output_tokens": usage.output_tokens,
  });
  const [task] = (await client.listTasks({ includeArtifacts: true })).tasks;
  expect(textsOf(task)).toEqual(["Let me look.", "Hello, world"]);
  expect(script.asked[1]?.results).toBe(1);
});

test("resumes the session with the next message, and forwards options", async () => {
  const seen: Options[] = [];
  const script = inOrder([says("One")], [says("Two")]);
  const options = { model: "claude-test", systemPrompt: "Be brief" };
  const client = await served({ ...script, options: (each) => seen.push(each) }, { options });
  const conversation = client.conversation();
  await conversation.send("First");
  const { task } = await conversation.send("Second");
  expect(textsOf(task)).toEqual(["Two"]);
  expect(seen[1]).toMatchObject({ ...options, resume: seen[0]?.sessionId });
  expect(seen[0]).toMatchObject({ permissionMode: "default", settingSources: [], tools: ["AskUserQuestion"] });
  expect(JSON.stringify(script.asked[1]?.lines)).toMatch(/First.*One.*Second/);
});

test("sends files as blocks, and marks the text as the caller's", async () => {
  const script = inOrder([says("Seen")]);
  const client = await served(script);
  const parts = [
    { text: "@/etc/passwd" },
    { raw: "AAAA", mediaType: "image/png" },
    { raw: "AAAA", mediaType: "application/pdf", filename: "a.pdf" },
    { raw: "AAAA", mediaType: "application/zip", filename: "a.zip" },
    { url: "http://169.254.169.254/", mediaType: "image/png" },
  ];
  await client.sendMessage({ message: { parts } });
  expect(script.asked[0]?.lines[0]?.message.content).toMatchObject([
    { type: "text", text: "@/etc/passwd" },
    { type: "image", source: { media_type: "image/png", data: "AAAA" } },
    { type: "document", source: { media_type: "application/pdf" }, title: "a.pdf" },
    { type: "text", text: "[File a.zip, application/zip]" },
    { type: "text", text: "[File  at http://169.254.169.254/]" },
  ]);
});

describe("permissions", () => {
  /** Pays the amount of each answer, until a tool has run. */
  async function paying(amounts: readonly number[], more: object = {}) {
    const paid: unknown[] = [];
    let count = 0;
    const asked: Asked[] = [];
    const model = (call: Asked): readonly Block[] => {
      asked.push(call);
      const amount = amounts[count];
      if (amount === undefined || paid.length > 0 || call.prompt.includes("did not")) return [says("Thanks")];
      return [calls(`c${(count += 1)}`, "pay", { amount })];
    };
    const client = await served({ model, tool: (_, input) => paid.push(input) }, more);
    const conversation = client.conversation();
    const { task } = await conversation.send("Pay");
    return { conversation, task, paid, asked };
  }

  const approvalOf = (task: Task | undefined): { digest: string } => {
    const data = task?.status.message?.parts[1]?.data as { approvals: { digest: string }[] } | undefined;
    const approval = data?.approvals[0];
    if (approval === undefined) throw new Error("There is no approval");
    return approval;
  };

  test("asks the user, ends the run, and makes the call once it is approved", async () => {
    const { conversation, task, paid, asked } = await paying([5, 5]);
    expect(task?.status.state).toBe("TASK_STATE_INPUT_REQUIRED");
    expect(statusOf(task)).toBe('Approve pay {"amount":5}?');
    expect(paid).toEqual([]);
    const { digest } = approvalOf(task);
    const done = await conversation.send({ parts: [{ data: { approved: true, digest } }] });
    expect(done.task?.status.state).toBe("TASK_STATE_COMPLETED");
    expect(paid).toEqual([{ amount: 5 }]);
    expect(asked[1]?.prompt).toBe(
      'The user approved this call. Make it now, with exactly these arguments: pay {"amount":5}',
    );
  });

  test("asks again if the model then changes the arguments", async () => {
    const { conversation, paid } = await paying([5, 500]);
    const { task } = await conversation.send("yes");
    expect(statusOf(task)).toBe('Approve pay {"amount":500}?');
    expect(paid).toEqual([]);
  });

  test("asks again after an answer that does not fit, or the digest of other arguments", async () => {
    const { conversation, asked } = await paying([5, 5]);
    for (const answer of ["perhaps", { parts: [{ data: { approved: true, digest: "0".repeat(64) } }] }]) {
      const { task } = await conversation.send(answer);
      expect(statusOf(task)).toBe('Approve pay {"amount":5}?');
    }
    expect(asked).toHaveLength(1);
  });

  test("tells the model the reason for a denial", async () => {
    const { conversation, task, paid, asked } = await paying([5]);
    const { digest } = approvalOf(task);
    const done = await conversation.send({ parts: [{ data: { approved: false, reason: "Too much.", digest } }] });
    expect(textsOf(done.task)).toEqual(["Thanks"]);
    expect(asked[1]?.prompt).toBe('The user did not approve this call. Too much. pay {"amount":5}');
    expect(paid).toEqual([]);
  });

  test("an approval covers one call", async () => {
    const paid: unknown[] = [];
    const script = inOrder(
      [calls("c1", "pay", { amount: 5 })],
      [calls("c2", "pay", { amount: 5 }), calls("c3", "pay", { amount: 5 })],
      [says("Done")],
    );
    const client = await served({ ...script, tool: (_, input) => paid.push(input) });
    const conversation = client.conversation();
    await conversation.send("Pay");
    const { task } = await conversation.send("yes");
    expect(task?.status.state).toBe("TASK_STATE_INPUT_REQUIRED");
    expect(paid).toHaveLength(1);
  });

  test("`canUseTool` of the agent decides first, and null asks the user", async () => {
    const deny = { canUseTool: async () => ({ behavior: "deny", message: "Never" }) };
    const { task } = await paying([5], { options: deny });
    expect(task?.status.state).toBe("TASK_STATE_COMPLETED");
    await server?.close();
    const ask = await paying([5], { options: { canUseTool: async () => null } });
    expect(ask.task?.status.state).toBe("TASK_STATE_INPUT_REQUIRED");
  });
});

describe("questions", () => {
  const options = [{ label: "Basel" }, { label: "Bern" }];
  const where = { question: "Where to?", header: "City", options, multiSelect: false };
  const how = { question: "How?", header: "Way", options: [{ label: "Train" }, { label: "Boat" }], multiSelect: true };

  async function asking(...questions: readonly object[]) {
    const script = inOrder([calls("c1", "AskUserQuestion", { questions })], [says("Good choice")]);
    const client = await served(script);
    const conversation = client.conversation();
    const { task } = await conversation.send("Plan");
    return { conversation, task, script };
  }

  test("are asked with a form, and a text answers a single one", async () => {
    const { conversation, task, script } = await asking(where);
    expect(statusOf(task)).toBe("Where to?\n- Basel\n- Bern");
    expect(task?.status.message?.parts[1]).toMatchObject({
      mediaType: "application/schema+json",
      data: { properties: { answer: { type: "string", title: "Where to?", enum: ["Basel", "Bern"] } } },
    });
    const done = await conversation.send("Chur");
    expect(textsOf(done.task)).toEqual(["Good choice"]);
    expect(script.asked[1]?.prompt).toBe("The user answered:\n- Where to? Chur");
  });

  test("are asked again if the answer is incomplete", async () => {
    const { conversation, script } = await asking(where, how);
    for (const wrong of [
      "Basel",
      { parts: [{ data: { answer1: "Basel" } }] },
      { parts: [{ data: { answer1: 7, answer2: "x" } }] },
    ]) {
      const { task } = await conversation.send(wrong);
      expect(task?.status.state).toBe("TASK_STATE_INPUT_REQUIRED");
    }
    await conversation.send({ parts: [{ data: { answer1: "Basel", answer2: ["Train", "Boat"] } }] });
    expect(script.asked[1]?.prompt).toBe("The user answered:\n- Where to? Basel\n- How? Train, Boat");
  });

  test("are not answered by a message that was sent before them", async () => {
    const [begun, held] = [gate(), gate()];
    const asked: string[] = [];
    const client = await served({
      async model({ prompt }) {
        asked.push(prompt);
        begun.open();
        await held.opened;
        return asked.length === 1 ? [calls("c1", "AskUserQuestion", { questions: [where] })] : [says("Good choice")];
      },
    });
    const configuration = { returnImmediately: true };
    const { task } = await client.sendMessage({ message: { parts: [{ text: "Plan" }] }, configuration });
    const taskId = task?.id ?? "";
    await begun.opened;
    await client.sendMessage({ message: { taskId, parts: [{ text: "Hurry" }] }, configuration });
    held.open();
    const count = async (): Promise<number | undefined> => (await client.getTask(taskId)).history?.length;
    await expect.poll(count).toBe(4);
    await client.sendMessage({ message: { taskId, parts: [{ text: "Bern" }] } });
    expect(asked).toEqual(["Plan", "The user answered:\n- Where to? Bern"]);
  });

  test("a call without questions returns an error to the model", async () => {
    const script = inOrder([calls("c1", "AskUserQuestion", { questions: "nonsense" })], [says("Sorry")]);
    const { task } = await (await served(script)).sendMessage("Plan");
    expect(textsOf(task)).toEqual(["Sorry"]);
    expect(JSON.stringify(script.asked[1]?.lines)).toContain("The call has no questions");
  });
});

describe("failures", () => {
  test("the turn limit fails the task with a plain text", async () => {
    const model = (): readonly Block[] => [calls(`c${Math.random()}`, "look", {})];
    const client = await served({ model, tool: () => "again" }, { options: { maxTurns: 3, allowedTools: ["look"] } });
    const { task } = await client.sendMessage("Loop");
    expect(task?.status.state).toBe("TASK_STATE_FAILED");
    expect(statusOf(task)).toBe("The agent reached its turn limit");
  });

  const result = (more: object): object => ({ type: "result", usage, ...more });
  const secret = "/home/ada/.claude sk-ant-1";
  test.each([
    [[result({ subtype: "error_during_execution", errors: [secret] })], "The agent failed"],
    [[result({ subtype: "error_max_budget_usd", errors: [secret] })], "The agent reached its budget"],
    [[result({ subtype: "error_max_structured_output_retries" })], "The answer does not match the expected schema"],
    [[result({ subtype: "success", is_error: true, result: secret })], "The model failed"],
    [[result({ subtype: "error_of_tomorrow", errors: [secret] })], "The model failed"],
    [[result({ subtype: "success", stop_reason: "refusal" })], "The model's provider withheld the answer"],
    [[], "The agent ended without an answer"],
    [
      [{}, { type: "stream_event" }, { type: "assistant", message: "nonsense" }, { type: "user", message: 7 }],
      "The agent ended without an answer",
    ],
  ])("%j fails with a text that reveals nothing about the server", async (messages, said) => {
    const agent = fromClaude(async function* () {
      yield* messages;
    }, card);
    server = await serve(agent, { port: 0, logger: false, store: memoryStore() });
    const { task } = await (await connect(server.url)).sendMessage("Hi");
    expect(task?.status.state).toBe("TASK_STATE_FAILED");
    expect(statusOf(task)).toBe(said);
  });

  const streamed = (event: object): object => ({ type: "stream_event", parent_tool_use_id: null, event });
  const delta = (text: string): object =>
    streamed({ type: "content_block_delta", index: 0, delta: { type: "text_delta", text } });
  test.each([
    [
      "replaces the text of an interrupted message",
      [
        streamed({ type: "message_start", message: { id: "a" } }),
        delta("Hel"),
        streamed({ type: "message_start", message: { id: "b" } }),
        delta("Hello"),
      ],
      ["Hello"],
    ],
    [
      "joins a surrogate pair that arrives in two pieces",
      [streamed({ type: "message_start" }), delta("\ud83d"), delta("\ude00")],
      ["😀"],
    ],
    ["shows no lone surrogates", [streamed({ type: "message_start" }), delta("a\ude00b\ud83d")], ["a\ufffdb"]],
    [
      "shows text that was not streamed",
      [{ type: "assistant", message: { id: "c", content: [says("Whole")] } }],
      ["Whole"],
    ],
    [
      "hides the text of subagents and of errors",
      [
        { type: "assistant", parent_tool_use_id: "t", message: { content: [says("Sub")] } },
        { type: "assistant", error: "rate_limit", message: { content: [says("API Error")] } },
        delta("Mine"),
      ],
      ["Mine"],
    ],
  ])("%s", async (_, messages, texts) => {
    const agent = fromClaude(async function* () {
      yield* [...messages, result({ subtype: "success", stop_reason: "end_turn" })];
    }, card);
    server = await serve(agent, { port: 0, logger: false, store: memoryStore() });
    const { task } = await (await connect(server.url)).sendMessage("Hi");
    expect(task?.status.state).toBe("TASK_STATE_COMPLETED");
    expect(textsOf(task)).toEqual(texts);
  });

  test("a structured answer is data", async () => {
    const agent = fromClaude(async function* () {
      yield result({ subtype: "success", stop_reason: "end_turn", structured_output: { city: "Basel" } });
    }, card);
    server = await serve(agent, { port: 0, logger: false, store: memoryStore() });
    const { task } = await (await connect(server.url)).sendMessage("Hi");
    expect(task?.artifacts).toMatchObject([{ name: "answer", parts: [{ data: { city: "Basel" } }] }]);
  });

  test("a tool that throws or is unknown returns an error to the model", async () => {
    const script = inOrder([calls("c1", "look", {})], [says("Sorry")]);
    const tool = (): Promise<never> => Promise.reject(new Error("No funds"));
    const { task } = await (
      await served({ ...script, tool }, { options: { allowedTools: ["look"] } })
    ).sendMessage("Look");
    expect(textsOf(task)).toEqual(["Sorry"]);
    expect(JSON.stringify(script.asked[1]?.lines)).toContain("No funds");
  });

  test.each([
    ["for the conversation", () => Array.from({ length: 1 << 20 }, () => Math.random().toString(36)).join("")],
    ["for the memory, though it compresses well", () => "a".repeat(33 << 20)],
  ])("a transcript that is too large %s fails the task", async (_where, tool) => {
    const script = inOrder([calls("c1", "look", {})], [says("Much")]);
    const client = await served({ ...script, tool }, { options: { allowedTools: ["look"] } });
    const { task } = await client.sendMessage("Look");
    expect(task?.status.state).toBe("TASK_STATE_FAILED");
    expect(script.asked).toHaveLength(1);
  });
});

test("a cancel interrupts the session", async () => {
  const begun = gate();
  const model = (): Promise<never> => {
    begun.open();
    return new Promise(() => {});
  };
  const stopped = vi.fn<() => void>();
  const scripted = scriptedQuery({ model });
  const agent = fromClaude((parameters: Parameters<typeof scripted>[0]) => {
    const stream = scripted(parameters);
    const { interrupt } = stream;
    return Object.assign(stream, { interrupt: () => interrupt?.().then(stopped) });
  }, card);
  server = await serve(agent, { port: 0, logger: false, store: memoryStore() });
  const client = await connect(server.url);
  const configuration = { returnImmediately: true };
  const { task } = await client.sendMessage({ message: { parts: [{ text: "Hi" }] }, configuration });
  await begun.opened;
  expect((await client.cancelTask(task?.id ?? "")).status.state).toBe("TASK_STATE_CANCELED");
  await vi.waitFor(() => expect(stopped).toHaveBeenCalledOnce());
});

test("a user's own store gets the transcript, and the conversation does not", async () => {
  const lines = new Map<string, object[]>();
  const sessionStore = {
    append: async ({ sessionId }: { sessionId: string }, entries: object[]) => {
      lines.set(sessionId, [...(lines.get(sessionId) ?? []), ...entries]);
    },
    load: async ({ sessionId }: { sessionId: string }) => lines.get(sessionId) ?? null,
  };
  const script = inOrder([says("One")], [says("Two")]);
  const conversation = (await served(script, { options: { sessionStore } })).conversation();
  await conversation.send("First");
  // Lines of a lost run.
  for (const each of lines.values()) each.push({ type: "user", message: { content: [says("Lost")] } });
  await conversation.send("Second");
  expect(JSON.stringify(script.asked[1]?.lines)).toMatch(/First.*One.*Second/);
  expect(JSON.stringify(script.asked[1]?.lines)).not.toContain("Lost");
  expect(lines.size).toBe(1);
});

test("the model waits until a slow store has the results", async () => {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const turn = { context: { state: () => undefined } } as unknown as Turn;
  const session = await Session.open(turn, undefined);
  const released = vi.fn<() => void>();
  const waiting = session.whenReleased(["c1"]).then(released);
  session.hold(["c1"]);
  await vi.advanceTimersByTimeAsync(60_000);
  expect(released).not.toHaveBeenCalled();
  session.release(["c1"]);
  await waiting;
});

test("other versions of the SDK are rejected with the supported range", () => {
  const peer = { adapter: "claude", name: "@anthropic-ai/claude-agent-sdk", min: "0.3.248", below: "0.4" };
  const needs = "@parley/frameworks/claude needs @anthropic-ai/claude-agent-sdk >=0.3.248 <0.4, found";
  expect(() => checkPeer(peer, "0.3.247")).toThrow(`${needs} 0.3.247`);
  expect(() => checkPeer(peer, "0.4.0")).toThrow(`${needs} 0.4.0`);
  expect(() => checkPeer(peer, "0.3.330")).not.toThrow();
});

test.each([undefined, {}, "query"])("rejects %j instead of query()", (query) => {
  expect(() => fromClaude(query as never, card)).toThrow(
    "fromClaude() needs query() of @anthropic-ai/claude-agent-sdk",
  );
});
