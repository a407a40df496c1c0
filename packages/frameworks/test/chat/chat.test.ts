import { connect, type Client, type ConnectOptions } from "@parley/a2a";
import type { StreamResponse } from "@parley/a2a/model";
import { data, defineAgent, file, serve, text, type Agent } from "@parley/node";
import {
  AbstractChat,
  lastAssistantMessageIsCompleteWithApprovalResponses as isDecided,
  readUIMessageStream as readBy7,
  tool,
  ToolLoopAgent,
  type ChatState,
  type ChatStatus,
  type LanguageModel,
} from "ai";
import { readUIMessageStream as readBy6 } from "ai-6";
import fc from "fast-check";
import { afterEach, describe, expect, it } from "vitest";
import * as z from "zod";
import { fromAISDK } from "../../src/ai-sdk/index.ts";
import { A2AChatTransport, type A2AChunk, type A2AUIMessage } from "../../src/chat/index.ts";
import { AnswerChunks } from "../../src/shared/chunks.ts";
import { gate } from "../gate.ts";
import { calls, says, Scripted } from "../scripted.ts";

/** The AI SDK's own reader builds `useChat()` messages from the transport's chunks. */

const closers: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closers.splice(0)) await close();
});

async function agentOf(onMessage: Parameters<typeof defineAgent>[0]["onMessage"]): Promise<Client> {
  const agent = defineAgent({
    name: "Talker",
    description: "Talks.",
    version: "1.0.0",
    skills: [],
    defaultInputModes: ["*"],
    defaultOutputModes: ["*"],
    onMessage,
  });
  return clientOf(agent);
}

async function clientOf(agent: Agent): Promise<Client> {
  const server = await serve(agent, { port: 0, logger: false });
  closers.push(() => server.close());
  return connect(server.url);
}

/** A chat without a page. */
class Chat {
  readonly transport: A2AChatTransport;
  readonly id: string;
  messages: A2AUIMessage[] = [];

  constructor(agent: Client, id: string = crypto.randomUUID(), options: { onStop?: "cancel" | "leave" } = {}) {
    this.transport = new A2AChatTransport({ agent, ...options });
    this.id = id;
  }

  async open(parts: A2AUIMessage["parts"], abortSignal?: AbortSignal): Promise<ReadableStream<A2AChunk>> {
    this.messages = [...this.messages, { id: crypto.randomUUID(), role: "user", parts }];
    return this.transport.sendMessages({
      trigger: "submit-message",
      chatId: this.id,
      messages: this.messages,
      abortSignal,
    });
  }

  async say(said: string | A2AUIMessage["parts"]): Promise<A2AUIMessage> {
    const stream = await this.open(typeof said === "string" ? [{ type: "text", text: said }] : said);
    const answer = await foldedBy7(stream);
    this.messages = [...this.messages, answer];
    return answer;
  }
}

class State implements ChatState<A2AUIMessage> {
  status: ChatStatus = "ready";
  error: Error | undefined;
  messages: A2AUIMessage[] = [];
  pushMessage = (message: A2AUIMessage): void => void (this.messages = [...this.messages, message]);
  popMessage = (): void => void (this.messages = this.messages.slice(0, -1));
  replaceMessage = (at: number, message: A2AUIMessage): void =>
    void (this.messages = this.messages.with(at, structuredClone(message)));
  snapshot = <T>(thing: T): T => structuredClone(thing);
}

/** The chat behind `useChat()`, without React. */
class StockChat extends AbstractChat<A2AUIMessage> {
  constructor(agent: Client | string, connect?: ConnectOptions) {
    const transport = new A2AChatTransport({ agent, ...(connect && { connect }) });
    super({ transport, sendAutomaticallyWhen: isDecided, state: new State() });
  }
}

/** A client whose agent sends the same events for each message. */
function sending(events: readonly StreamResponse[]): Client {
  const all = async function* (): AsyncGenerator<StreamResponse> {
    yield* events;
  };
  return { sendStreamingMessage: all } as unknown as Client;
}

async function foldedBy7(stream: ReadableStream<A2AChunk>): Promise<A2AUIMessage> {
  let last: A2AUIMessage | undefined;
  for await (const message of readBy7<A2AUIMessage>({ stream, terminateOnError: true })) last = message;
  if (last === undefined) throw new Error("The stream has no message");
  return last;
}

async function foldedBy6(stream: ReadableStream<A2AChunk>): Promise<A2AUIMessage> {
  let last: unknown;
  // ai 6 knows these chunks, or ignores them.
  const given = stream as ReadableStream<never>;
  for await (const message of readBy6({ stream: given, terminateOnError: true })) last = message;
  return last as A2AUIMessage;
}

const textOf = ({ parts }: A2AUIMessage): string =>
  parts.map((part) => (part.type === "text" ? part.text : "")).join("");

describe("an answer", () => {
  it("streams its artifacts as text, files and data, with progress", async () => {
    const client = await agentOf(async function* (turn) {
      yield turn.working("Thinking");
      yield* turn.stream(
        (async function* () {
          yield "It ";
          yield "rains";
        })(),
      );
      yield turn.artifact({ artifactId: "table", name: "Table", parts: [data({ rain: true })] });
      yield turn.artifact({ parts: [file(new TextEncoder().encode("a,b"), { mediaType: "text/csv" })] });
    });
    const chat = new Chat(client);
    const answer = await chat.say("Weather?");
    expect(textOf(answer)).toBe("It rains");
    expect(answer.parts).toContainEqual(expect.objectContaining({ type: "data-progress", data: { text: "Thinking" } }));
    expect(answer.parts).toContainEqual(
      expect.objectContaining({
        type: "data-artifact",
        data: { artifactId: "table", name: "Table", data: { rain: true } },
      }),
    );
    expect(answer.parts).toContainEqual({
      type: "file",
      mediaType: "text/csv",
      url: `data:text/csv;base64,${btoa("a,b")}`,
    });
    expect(answer.metadata?.a2a).toMatchObject({ contextId: chat.id, state: "TASK_STATE_COMPLETED" });
  });

  it("is the same with ai 6", async () => {
    const client = await agentOf((turn) => turn.reply("Hello"));
    const chat = new Chat(client);
    expect(textOf(await foldedBy6(await chat.open([{ type: "text", text: "Hi" }])))).toBe("Hello");
  });

  it("is an error with the reason if the task fails", async () => {
    const client = await agentOf(async function* (turn) {
      yield turn.failed("The station is closed");
    });
    const chat = new Chat(client);
    await expect(chat.say("Weather?")).rejects.toThrow("The station is closed");
    expect((await chat.transport.messages(chat.id)).map(textOf)).toEqual(["Weather?", "The station is closed"]);
  });

  it("contains no URL that runs code in the page, and no media type that escapes the URL of a file", async () => {
    const client = await agentOf(async function* (turn) {
      const urls = ["javascript:alert(1)", "data:text/html,<script>", "https://example.com/a.png", "vbscript:x", "//x"];
      yield turn.artifact({ parts: urls.map((url) => ({ url, mediaType: "image/png" })) });
      yield turn.artifact({ parts: [{ raw: btoa("<script>"), mediaType: "text/html,<script>alert(1)</script>" }] });
    });
    const { parts } = await new Chat(client).say("Files?");
    expect(parts.flatMap((part) => (part.type === "file" ? [part.url] : []))).toEqual([
      "https://example.com/a.png",
      `data:application/octet-stream;base64,${btoa("<script>")}`,
    ]);
  });

  it("joins the chunks of a file, and omits a file that is too large for a page", async () => {
    const bytes = new Uint8Array(500_000).fill(7);
    const client = await agentOf(async function* (turn) {
      yield* turn.file(new Blob([bytes]), { name: "seven.bin", mediaType: "application/x-seven" });
    });
    const [part] = (await new Chat(client).say("File?")).parts.filter(({ type }) => type === "file");
    expect(part).toMatchObject({ mediaType: "application/x-seven" });
    const url = part?.type === "file" ? part.url : "";
    expect(new Uint8Array(await (await fetch(url)).arrayBuffer())).toEqual(bytes);
    const small = new A2AChatTransport({ agent: client, maxFileBytes: 100_000 });
    const messages: A2AUIMessage[] = [{ id: "m1", role: "user", parts: [{ type: "text", text: "File?" }] }];
    const stream = await small.sendMessages({
      trigger: "submit-message",
      chatId: "c",
      messages,
      abortSignal: undefined,
    });
    const { parts } = await foldedBy7(stream);
    expect(parts).toContainEqual(
      expect.objectContaining({
        type: "data-file",
        data: expect.objectContaining({ filename: "seven.bin", bytes: 500_000 }) as object,
      }),
    );
  });
});

describe("an answer from any agent", () => {
  const ids = { taskId: "t", contextId: "c" };
  const appended = (taskId: string, piece: string): StreamResponse => ({
    artifactUpdate: { taskId, contextId: "c", artifact: { artifactId: "1", parts: [text(piece)] }, append: true },
  });
  const asking: StreamResponse = {
    statusUpdate: {
      ...ids,
      status: {
        state: "TASK_STATE_INPUT_REQUIRED",
        message: { messageId: "1", role: "ROLE_AGENT", parts: [text("Which?")] },
      },
    },
  };

  it("keeps a message apart from an artifact with the same id, and ignores events of another task", async () => {
    const other = { ...asking.statusUpdate, taskId: "other" } as NonNullable<StreamResponse["statusUpdate"]>;
    const events = [
      appended("t", "Two "),
      appended("other", "no "),
      { statusUpdate: other },
      appended("t", "trains. "),
    ];
    const chat = new StockChat(sending([...events, asking]));
    await chat.sendMessage({ text: "Basel" });
    expect(chat.error).toBe(undefined);
    expect(chat.messages.slice(-1).map(textOf)).toEqual(["Two trains. Which?"]);
  });

  it("takes its task from any event, so that the next message continues it", async () => {
    const chat = new StockChat(sending([appended("t", "Two trains. "), asking]));
    await chat.sendMessage({ text: "Basel" });
    expect(chat.messages.at(-1)?.metadata?.a2a).toEqual({ ...ids, state: "TASK_STATE_INPUT_REQUIRED" });
  });
});

describe("a question", () => {
  it.each(["live", "after a reload"])("does not repeat the content before it, %s", async (time) => {
    const early = [text("Earlier. "), data({ n: 1 }), file(new Uint8Array([1]), { mediaType: "image/png" })];
    const client = await agentOf(async function* (turn) {
      if (turn.number === 1) {
        yield turn.artifact({ artifactId: "early", parts: early });
        yield turn.artifact({ artifactId: "plan", parts: [text("Plan: ")], open: true });
        return yield turn.inputRequired("Where to?");
      }
      yield turn.append("plan", [text(`to ${turn.text}. `)]);
      if (turn.number === 2) return yield turn.inputRequired("When?");
      yield turn.artifact({ artifactId: "late", parts: [text("Late")] });
      yield turn.artifact({ artifactId: "late", parts: [text("Later"), data({ n: 2 })] });
    });
    const chat = new Chat(client);
    await chat.say("A trip");
    const next = time === "live" ? chat : new Chat(client, chat.id);
    if (next !== chat) next.messages = await next.transport.messages(chat.id);
    expect(textOf(await next.say("Basel"))).toBe("to Basel. When?");
    const last = await next.say("Friday");
    expect(last.parts.flatMap((part) => (part.type === "data-artifact" ? [part.data.data] : []))).toEqual([{ n: 2 }]);
    expect(last.parts.filter(({ type }) => type === "file")).toEqual([]);
    expect(textOf(last)).toBe("to Friday. Later");
  });

  it("is answered by the next message, in the same task, even after a page reload", async () => {
    const client = await agentOf(async function* (turn) {
      if (turn.number === 1) return yield turn.inputRequired("Where to?");
      yield turn.completed(`To ${turn.text}`);
    });
    const chat = new Chat(client);
    const asked = await chat.say("A trip");
    expect(textOf(asked)).toBe("Where to?");
    const later = new Chat(client, chat.id);
    later.messages = await later.transport.messages(chat.id);
    expect(later.messages.map(({ role, ...message }) => [role, textOf({ role, ...message })])).toEqual([
      ["user", "A trip"],
      ["assistant", "Where to?"],
    ]);
    const done = await later.say("Basel");
    expect(textOf(done)).toBe("To Basel");
    expect(done.metadata?.a2a.taskId).toBe(asked.metadata?.a2a.taskId);
  });

  it("with a form is answered with data", async () => {
    const schema = { type: "object", properties: { guests: { type: "integer" } } };
    const client = await agentOf(async function* (turn) {
      const [sent] = turn.message.parts;
      if (turn.number === 1)
        return yield turn.inputRequired([text("How many?"), data(schema, { mediaType: "application/schema+json" })]);
      yield turn.completed(`For ${JSON.stringify(sent?.data)}`);
    });
    const chat = new Chat(client);
    const asked = await chat.say("Dinner");
    expect(asked.parts).toContainEqual(expect.objectContaining({ type: "data-form", data: { schema } }));
    expect(textOf(await chat.say([{ type: "data-answer", data: { guests: 4 } }]))).toBe('For {"guests":4}');
  });

  it("about a tool approval is answered with its digest", async () => {
    const approvals = [
      { approvalId: "a1", toolCallId: "t1", toolName: "pay", input: { amount: 5 }, digest: "sha-256:x" },
      { approvalId: "a2", toolCallId: "t2", toolName: "book", input: {}, digest: "sha-256:y" },
    ];
    const client = await agentOf(async function* (turn) {
      if (turn.number === 1) return yield turn.inputRequired([text("Pay?"), data({ approvals })]);
      yield turn.completed(JSON.stringify(turn.message.parts.map((part) => part.data)));
    });
    const chat = new Chat(client);
    const asked = await chat.say("Pay");
    const waiting = asked.parts.filter((part) => part.type === "dynamic-tool");
    expect(waiting.map(({ state, toolName }) => [state, toolName])).toEqual([
      ["approval-requested", "pay"],
      ["approval-requested", "book"],
    ]);
    // What `addToolApprovalResponse()` does.
    const parts = asked.parts.map((part): (typeof asked.parts)[number] =>
      part.type === "dynamic-tool" && part.state === "approval-requested"
        ? {
            ...part,
            state: "approval-responded",
            approval: { id: part.approval.id, approved: part.toolName === "pay" },
          }
        : part,
    );
    const stream = await chat.transport.sendMessages({
      trigger: "submit-message",
      chatId: chat.id,
      messages: [...chat.messages.slice(0, -1), { ...asked, parts }],
      abortSignal: undefined,
    });
    expect(JSON.parse(textOf(await foldedBy7(stream)))).toEqual([
      { approvalId: "a1", approved: true, digest: "sha-256:x" },
      { approvalId: "a2", approved: false, digest: "sha-256:y" },
    ]);
  });
});

it("approves a tool call of an AI SDK agent, which then runs once", async () => {
  const paid: unknown[] = [];
  const pay = tool({
    inputSchema: z.object({ euros: z.number() }),
    needsApproval: true,
    execute: (input) => paid.push(input),
  });
  const model = new Scripted(calls(["c1", "pay", { euros: 5 }]), says("Thanks"));
  const loop = new ToolLoopAgent({ model: model as unknown as LanguageModel, tools: { pay } });
  const client = await clientOf(fromAISDK(loop, { name: "Payer", description: "Pays.", version: "1.0.0", skills: [] }));
  const chat = new Chat(client);
  const asked = await chat.say("Pay");
  const parts = asked.parts.map((part): (typeof asked.parts)[number] =>
    part.type === "dynamic-tool" && part.state === "approval-requested"
      ? { ...part, state: "approval-responded", approval: { id: part.approval.id, approved: true } }
      : part,
  );
  expect(paid).toEqual([]);
  const stream = await chat.transport.sendMessages({
    trigger: "submit-message",
    chatId: chat.id,
    messages: [...chat.messages.slice(0, -1), { ...asked, parts }],
    abortSignal: undefined,
  });
  expect(textOf(await foldedBy7(stream))).toBe("Thanks");
  expect(paid).toEqual([{ euros: 5 }]);
});

it.each([
  ["each with its own ids", ["c1", "c2"]],
  ["with the same ids", ["c1", "c1"]],
])("approves tool calls one after the other, %s", async (_, [first = "", second = ""]) => {
  const paid: unknown[] = [];
  const pay = tool({
    inputSchema: z.object({ euros: z.number() }),
    needsApproval: true,
    execute: (input) => paid.push(input),
  });
  const model = new Scripted(
    [...says("First this. ").slice(0, -1), ...calls([first, "pay", { euros: 5 }])],
    calls([second, "pay", { euros: 7 }]),
    says("Thanks"),
  );
  const loop = new ToolLoopAgent({ model: model as unknown as LanguageModel, tools: { pay } });
  const client = await clientOf(fromAISDK(loop, { name: "Payer", description: "Pays.", version: "1.0.0", skills: [] }));
  const chat = new StockChat(client);
  const waiting = (): readonly unknown[] =>
    (chat.messages.at(-1)?.parts ?? []).flatMap((part) =>
      part.type === "dynamic-tool" && part.state === "approval-requested" ? [part] : [],
    );
  await chat.sendMessage({ text: "Pay" });
  for (const euros of [5, 7]) {
    await expect.poll(waiting).toMatchObject([{ input: { euros } }]);
    await expect.poll(() => chat.status).toBe("ready");
    const [{ approval: { id } = { id: "" } } = {}] = waiting() as readonly { readonly approval?: { id: string } }[];
    await chat.addToolApprovalResponse({ id, approved: true });
  }
  await expect.poll(() => chat.messages.slice(-1).map(textOf)).toEqual(["First this. Thanks"]);
  expect(paid).toEqual([{ euros: 5 }, { euros: 7 }]);
});

describe("a page reload", () => {
  it.each([6, 7] as const)("during an answer neither loses nor duplicates anything: ai %i", async (version) => {
    const [half, rest] = [gate(), gate()];
    const client = await agentOf(async function* (turn) {
      if (turn.number === 1) {
        yield turn.artifact({ artifactId: "early", parts: [text("Earlier. ")] });
        return yield turn.inputRequired("Go on?");
      }
      yield* turn.stream(
        (async function* () {
          yield "One, ";
          half.open();
          await rest.opened;
          yield "two, three";
        })(),
      );
    });
    const chat = new Chat(client);
    await chat.say("Count");
    const reader = (await chat.open([{ type: "text", text: "Yes" }])).getReader();
    await half.opened;
    await reader.cancel();
    const later = new Chat(client, chat.id);
    later.messages = await later.transport.messages(chat.id);
    expect(later.messages.map(({ role }) => role)).toEqual(["user", "assistant", "user"]);
    const stream = await later.transport.reconnectToStream({ chatId: chat.id, abortSignal: undefined });
    rest.open();
    if (stream === null) throw new Error("There is no answer in progress");
    const answer = await (version === 6 ? foldedBy6(stream) : foldedBy7(stream));
    if (version === 7) expect(textOf(answer)).toBe("One, two, three");
    // ai 6 cannot empty a message: it also shows the content of earlier turns.
    else expect(textOf(answer)).toContain("One, two, three");
    expect(await later.transport.reconnectToStream({ chatId: chat.id, abortSignal: undefined })).toBeNull();
  });

  it("finds an answer that ended after the messages were read", async () => {
    const go = gate();
    const client = await agentOf(async function* (turn) {
      yield turn.working("Wait");
      await go.opened;
      yield turn.completed("Done");
    });
    const chat = new Chat(client);
    const reader = (await chat.open([{ type: "text", text: "Go" }])).getReader();
    for (let seen = ""; !seen.includes("Wait");) seen = JSON.stringify((await reader.read()).value);
    await reader.cancel();
    const later = new Chat(client, chat.id);
    const [asked, ...others] = await later.transport.messages(chat.id);
    expect(others).toEqual([]);
    go.open();
    const [task] = (await client.listTasks({ contextId: chat.id })).tasks;
    await client.waitFor(task?.id ?? "");
    const stream = await later.transport.reconnectToStream({ chatId: chat.id, abortSignal: undefined });
    if (stream === null) throw new Error("There is no answer");
    const answer = await foldedBy7(stream);
    expect(textOf(answer)).toBe("Done");
    expect(answer.id).toBe(`answer-${asked?.id}`);
    expect((await later.transport.messages(chat.id)).at(-1)).toMatchObject({ id: answer.id, role: "assistant" });
  });
});

describe("stop()", () => {
  it.each(["cancel", "leave"] as const)("with onStop %s", async (onStop) => {
    const [running, go] = [gate(), gate()];
    const client = await agentOf(async function* (turn) {
      running.open();
      yield turn.working("Wait");
      await Promise.race([go.opened, new Promise((resolve) => turn.signal.addEventListener("abort", resolve))]);
      yield turn.completed("Done");
    });
    const chat = new Chat(client, undefined, { onStop });
    const stop = new AbortController();
    const stream = await chat.open([{ type: "text", text: "Go" }], stop.signal);
    const reading = stream.getReader().read();
    await running.opened;
    await reading;
    stop.abort();
    const state = async (): Promise<string | undefined> =>
      (await client.listTasks({ contextId: chat.id })).tasks[0]?.status.state;
    if (onStop === "cancel") return expect.poll(state).toBe("TASK_STATE_CANCELED");
    go.open();
    await expect.poll(state).toBe("TASK_STATE_COMPLETED");
  });
});

describe("stop() of useChat()", () => {
  it("ends a message before its agent is connected, and never sends it", async () => {
    const [asked, rest] = [gate(), gate()];
    let heard = 0;
    const { chosen } = await agentOf(async function* (turn) {
      heard += 1;
      yield turn.completed("Done");
    });
    const chat = new StockChat(new URL(chosen.url).origin, {
      fetch: async (to, init) => {
        asked.open();
        await rest.opened;
        return fetch(to, init);
      },
    });
    const sent = chat.sendMessage({ text: "Go" });
    await asked.opened;
    await chat.stop();
    await sent;
    expect([chat.status, chat.error]).toEqual(["ready", undefined]);
    rest.open();
    await chat.sendMessage({ text: "Again" });
    expect(heard).toBe(1);
  });

  it("does not wait for a silent agent, and cancels its task once the agent sends it", async () => {
    const [asked, rest, canceled] = [gate(), gate(), gate()];
    const client = {
      async *sendStreamingMessage(): AsyncGenerator<StreamResponse> {
        asked.open();
        await rest.opened;
        yield { task: { id: "t", contextId: "c", status: { state: "TASK_STATE_WORKING" } } };
      },
      cancelTask: canceled.open,
    };
    const chat = new StockChat(client as unknown as Client);
    const sent = chat.sendMessage({ text: "Go" });
    await asked.opened;
    await chat.stop();
    await sent;
    expect([chat.status, chat.error]).toEqual(["ready", undefined]);
    rest.open();
    await canceled.opened;
  });
});

it("regenerate() sends the message again, in a new task", async () => {
  const client = await agentOf(async function* (turn) {
    yield turn.completed(`${turn.taskId} ${turn.text}`);
  });
  const chat = new Chat(client);
  const first = await chat.say("Again");
  const stream = await chat.transport.sendMessages({
    trigger: "regenerate-message",
    chatId: chat.id,
    messages: chat.messages.slice(0, -1),
    abortSignal: undefined,
  });
  const second = await foldedBy7(stream);
  expect(second.metadata?.a2a.contextId).toBe(chat.id);
  expect(textOf(second)).toMatch(/ Again$/);
  expect(textOf(second)).not.toBe(textOf(first));
});

describe("any events", () => {
  const pieces = fc.array(
    fc.record({
      artifactId: fc.constantFrom("a", "b"),
      text: fc.string({ maxLength: 6 }),
      append: fc.boolean(),
      other: fc.boolean(),
    }),
    { maxLength: 30 },
  );

  it("make the same message as the final task, whatever was replaced", async () => {
    await fc.assert(
      fc.asyncProperty(pieces, async (given) => {
        const events = given.map(({ artifactId, text: piece, append, other }): StreamResponse => {
          const parts = [text(piece), ...(other ? [data({ piece })] : [])];
          return { artifactUpdate: { taskId: "t", contextId: "c", artifact: { artifactId, parts }, append } };
        });
        const status = { state: "TASK_STATE_COMPLETED" } as const;
        const chunks: A2AChunk[] = [];
        const answer = new AnswerChunks({ messageId: "m", maxFileBytes: 10 }, (chunk) => void chunks.push(chunk));
        answer.start({});
        for (const event of events) answer.apply(event);
        answer.apply({ statusUpdate: { taskId: "t", contextId: "c", status } });
        answer.finish();
        const texts = new Map<string, string>();
        for (const { artifactId, text: piece, append } of given)
          texts.set(artifactId, append ? (texts.get(artifactId) ?? "") + piece : piece);
        const message = await foldedBy7(
          new ReadableStream({
            start: (controller) => {
              for (const chunk of chunks) controller.enqueue(chunk);
              controller.close();
            },
          }),
        );
        const shown = message.parts.flatMap((part) => (part.type === "text" ? [part.text] : []));
        expect(shown.toSorted()).toEqual([...texts.values()].filter((each) => each !== "").toSorted());
      }),
      { numRuns: 300 },
    );
  });
});
