import { EventType, type BaseEvent, type Message, type RunAgentParameters } from "@ag-ui/client";
import { connect, type Client } from "@parley/a2a";
import { A2AError } from "@parley/a2a/model";
import { data, defineAgent, file, serve, text, type Agent } from "@parley/node";
import { afterEach, describe, expect, it, test, vi } from "vitest";
import { A2AAgent, type A2AAgentConfig } from "../../src/ag-ui/index.ts";
import { gate } from "../gate.ts";
import type { Interceptor } from "@parley/server";

/** Runs against agents over HTTP. The AG-UI client library checks each event and the order of events. */

const closers: (() => Promise<void>)[] = [];
// The library warns about members that the protocol does not define.
const warn = vi.spyOn(console, "warn");
afterEach(async () => {
  for (const close of closers.splice(0)) await close();
  if (warn.mock.calls.length > 0) throw new Error(`AG-UI warns: ${JSON.stringify(warn.mock.calls)}`);
});

type OnMessage = Parameters<typeof defineAgent>[0]["onMessage"];

async function serving(onMessage: OnMessage, ...interceptors: Interceptor[]): Promise<Client> {
  const agent: Agent = defineAgent({
    name: "Talker",
    description: "Talks.",
    version: "1.0.0",
    skills: [],
    defaultInputModes: ["*"],
    defaultOutputModes: ["*"],
    onMessage,
  });
  const server = await serve(agent, { port: 0, logger: false });
  closers.push(() => server.close());
  return connect(server.url, { interceptors });
}

/** A client whose agent does not support an operation. */
function lacking(name: string, instead: () => void = () => undefined): Interceptor {
  const check = (operation: string): void => {
    if (operation !== name) return;
    instead();
    throw new A2AError("UnsupportedOperation");
  };
  return (next) => ({
    async call(operation, request, context) {
      check(operation);
      return next.call(operation, request, context);
    },
    async stream(operation, request, context) {
      check(operation);
      return next.stream(operation, request, context);
    },
  });
}

/** A page with one thread. */
class Page {
  readonly agent: A2AAgent;
  events: BaseEvent[] = [];

  constructor(client: Client, config: Partial<A2AAgentConfig> = {}) {
    this.agent = new A2AAgent({ agent: client, ...config });
    this.agent.subscribe({ onEvent: ({ event }) => void this.events.push(event) });
  }

  /** The page after a reload: it has only the thread id. */
  reloaded(client: Client): Page {
    return new Page(client, { threadId: this.agent.threadId });
  }

  async say(content: string, parameters?: RunAgentParameters): Promise<readonly BaseEvent[]> {
    this.agent.addMessage({ id: crypto.randomUUID(), role: "user", content });
    return this.run(parameters);
  }

  async run(parameters?: RunAgentParameters): Promise<readonly BaseEvent[]> {
    this.events = [];
    await this.agent.runAgent(parameters);
    return this.events;
  }

  /** What the user sees. */
  get shown(): readonly (readonly [role: string, content: unknown])[] {
    return this.agent.messages.map(({ role, content }) => [role, content]);
  }
}

const typesOf = (events: readonly BaseEvent[]): string[] => events.map(({ type }) => type);
const ended = (events: readonly BaseEvent[]): BaseEvent | undefined => events.at(-1);

async function* slowly(pieces: readonly string[], at: number, hold: () => Promise<void>): AsyncGenerator<string> {
  for (const [index, piece] of pieces.entries()) {
    if (index === at) await hold();
    yield piece;
  }
}

describe("a run", () => {
  it("shows artifacts as text, data and files, and progress", async () => {
    const client = await serving(async function* (turn) {
      yield turn.working("Thinking");
      yield* turn.stream(slowly(["It ", "rains"], -1, () => Promise.resolve()));
      yield turn.artifact({ artifactId: "table", name: "Table", parts: [data({ rain: true })] });
      yield turn.artifact({ parts: [file(new TextEncoder().encode("a,b"), { mediaType: "text/csv" })] });
    });
    const page = new Page(client);
    const events = await page.say("Weather?");
    expect(page.shown).toEqual([
      ["user", "Weather?"],
      ["activity", { text: "Thinking" }],
      ["assistant", "It rains"],
      ["activity", { artifactId: "table", name: "Table", data: { rain: true } }],
      ["activity", { url: `data:text/csv;base64,${btoa("a,b")}`, mediaType: "text/csv" }],
    ]);
    const { START, CONTENT, END } = {
      START: EventType.TEXT_MESSAGE_START,
      CONTENT: EventType.TEXT_MESSAGE_CONTENT,
      END: EventType.TEXT_MESSAGE_END,
    };
    expect(typesOf(events).filter((type) => type.startsWith("TEXT"))).toEqual([START, CONTENT, CONTENT, END]);
    expect(ended(events)).toMatchObject({
      type: EventType.RUN_FINISHED,
      result: { contextId: page.agent.threadId, state: "TASK_STATE_COMPLETED" },
    });
  });

  it("shows a direct reply", async () => {
    const page = new Page(await serving((turn) => turn.reply("Hello")));
    expect(ended(await page.say("Hi"))?.type).toBe(EventType.RUN_FINISHED);
    expect(page.shown).toEqual([
      ["user", "Hi"],
      ["assistant", "Hello"],
    ]);
  });

  it("replaces a text when the agent does, and keeps the others", async () => {
    const client = await serving(async function* (turn) {
      yield turn.artifact({ artifactId: "a", parts: [text("It will rain")] });
      yield turn.artifact({ artifactId: "b", parts: [text("Really. ")] });
      yield turn.artifact({ artifactId: "a", parts: [text("It will snow")], open: true });
      yield turn.append("a", [text("!")], { last: true });
    });
    const page = new Page(client);
    const events = await page.say("Weather?");
    expect(typesOf(events)).toContain(EventType.MESSAGES_SNAPSHOT);
    expect(page.shown).toEqual([
      ["user", "Weather?"],
      ["assistant", "It will snow!"],
      ["assistant", "Really. "],
    ]);
  });

  it("ends with the reason for a failure", async () => {
    const client = await serving(async function* (turn) {
      if (turn.text === "no") return yield turn.rejected("Not today");
      yield turn.failed("The station is closed");
    });
    const page = new Page(client);
    expect(ended(await page.say("Weather?"))).toMatchObject({
      type: EventType.RUN_ERROR,
      message: "The station is closed",
      code: "TASK_STATE_FAILED",
    });
    expect(ended(await page.say("no"))).toMatchObject({ message: "Not today", code: "TASK_STATE_REJECTED" });
  });

  it("ends with the client's error if the request fails, and the next run works", async () => {
    const client = await serving((turn) => turn.reply("Hello"));
    const page = new Page(client, { agent: "http://127.0.0.1:1/", connect: { retry: false } });
    const error = ended(await page.say("Hi"));
    expect(error).toMatchObject({ type: EventType.RUN_ERROR, code: "ConnectionFailed" });
    expect(ended(await new Page(client).run())).toMatchObject({
      code: "InvalidParams",
      message: "The run has neither a user message nor an answer to an interrupt to send",
    });
  });

  it("joins the task of the first run if it is repeated, and shows nothing twice", async () => {
    let count = 0;
    const client = await serving(async function* (turn) {
      count += 1;
      yield turn.artifact({ parts: [text("Once")] });
    });
    const page = new Page(client);
    await page.say("Pay", { runId: "run-1" });
    await page.run({ runId: "run-1" });
    expect(count).toBe(1);
    expect(page.shown).toEqual([
      ["user", "Pay"],
      ["assistant", "Once"],
    ]);
    // The user wants another answer.
    page.agent.setMessages(page.agent.messages.slice(0, 1));
    await page.run();
    expect(count).toBe(2);
  });

  it("sends the page's files, context and properties", async () => {
    const client = await serving(async function* (turn) {
      yield turn.completed(JSON.stringify([turn.message.parts, turn.message.metadata]));
    });
    const page = new Page(client);
    const mimeType = "image/png";
    page.agent.addMessage({
      id: "m",
      role: "user",
      content: [
        { type: "text", text: "See" },
        { type: "image", source: { type: "data", value: "AAAA", mimeType } },
        { type: "document", source: { type: "url", value: "https://example.com/a.pdf", mimeType: "application/pdf" } },
      ],
    });
    const context = [{ description: "Where the user is", value: "Basel" }];
    await page.run({ context, forwardedProps: { locale: "de" }, tools: [{ name: "t", description: "T" }] });
    expect(JSON.parse(String(page.shown.at(-1)?.[1]))).toEqual([
      [
        { text: "See" },
        { raw: "AAAA", mediaType: mimeType },
        { url: "https://example.com/a.pdf", mediaType: "application/pdf" },
      ],
      { "ag-ui": { context, forwardedProps: { locale: "de" } } },
    ]);
  });

  it.each(["javascript:alert(1)", "file:///etc/passwd", "no URL"])("rejects the file %s", async (value) => {
    const page = new Page(await serving((turn) => turn.reply("Hello")));
    page.agent.addMessage({ id: "m", role: "user", content: [{ type: "image", source: { type: "url", value } }] });
    expect(ended(await page.run())).toMatchObject({ type: EventType.RUN_ERROR, code: "InvalidParams" });
  });
});

describe("a question", () => {
  const asking: OnMessage = async function* (turn) {
    if (turn.number === 1) {
      yield turn.artifact({ artifactId: "plan", parts: [text("Plan: ")], open: true });
      return yield turn.inputRequired("Where to?");
    }
    yield turn.append("plan", [text(`to ${turn.text}`)], { last: true });
  };
  const afterwards = (answer: string): readonly (readonly [string, unknown])[] => [
    ["user", "A trip"],
    ["assistant", "Plan: to Basel"],
    ["assistant", "Where to?"],
    ["user", answer],
  ];

  it("is answered by the user's next message, in the same task", async () => {
    const page = new Page(await serving(asking));
    const events = await page.say("A trip");
    expect(ended(events)).toMatchObject({
      type: EventType.RUN_FINISHED,
      outcome: { type: "interrupt", interrupts: [{ reason: "input_required", message: "Where to?" }] },
    });
    expect(page.agent.pendingInterrupts).toHaveLength(1);
    await page.say("Basel");
    expect(page.shown).toEqual(afterwards("Basel"));
    expect(page.agent.pendingInterrupts).toEqual([]);
  });

  it("is answered by resume, even with the id of the run that asked, after a reload, or from a clone", async () => {
    const client = await serving(asking);
    const first = new Page(client);
    await first.say("A trip", { runId: "run-1" });
    const page = first.reloaded(client);
    await page.agent.connectAgent();
    const [interrupt] = page.agent.pendingInterrupts;
    expect(interrupt?.message).toBe("Where to?");
    const clone = page.agent.clone();
    await clone.runAgent({
      runId: "run-1",
      resume: [{ interruptId: interrupt?.id ?? "", status: "resolved", payload: "Basel" }],
    });
    expect(clone.messages.map(({ role, content }) => [role, content])).toEqual(afterwards("").slice(0, 3));
    expect((await client.listTasks({ contextId: page.agent.threadId })).tasks).toHaveLength(1);
  });

  it("is answered by a page that stores its messages itself", async () => {
    const client = await serving(asking);
    const first = new Page(client);
    await first.say("A trip");
    const page = new Page(client, { threadId: first.agent.threadId, initialMessages: first.agent.messages });
    await page.say("Basel");
    expect(page.shown).toEqual(afterwards("Basel"));
  });

  it("cancels the task if it is dismissed", async () => {
    const client = await serving(asking);
    const page = new Page(client);
    await page.say("A trip");
    const resume = page.agent.pendingInterrupts.map(({ id }) => ({ interruptId: id, status: "cancelled" as const }));
    expect(ended(await page.run({ resume }))).toMatchObject({ outcome: { type: "cancelled" } });
    const { tasks } = await client.listTasks({ contextId: page.agent.threadId });
    expect(tasks.map(({ status }) => status.state)).toEqual(["TASK_STATE_CANCELED"]);
  });

  it("passes its form as the schema, and is answered with data", async () => {
    const schema = { type: "object", properties: { guests: { type: "integer" } } };
    const client = await serving(async function* (turn) {
      const [sent] = turn.message.parts;
      if (turn.number === 1)
        return yield turn.inputRequired([text("How many?"), data(schema, { mediaType: "application/schema+json" })]);
      yield turn.completed(`For ${JSON.stringify(sent?.data)}`);
    });
    const page = new Page(client);
    await page.say("Dinner");
    const [interrupt] = page.agent.pendingInterrupts;
    expect(interrupt?.responseSchema).toEqual(schema);
    await page.run({ resume: [{ interruptId: interrupt?.id ?? "", status: "resolved", payload: { guests: 4 } }] });
    expect(page.shown.at(-1)).toEqual(["assistant", 'For {"guests":4}']);
  });

  it("about tool approvals has an interrupt for each call, and only true approves", async () => {
    const approvals = ["pay", "book", "call", "send"].map((toolName, at) => ({
      approvalId: `a${at}`,
      toolCallId: `t${at}`,
      toolName,
      input: { amount: at },
      digest: `sha-256:${at}`,
    }));
    const client = await serving(async function* (turn) {
      if (turn.number === 1) return yield turn.inputRequired([text("May I?"), data({ approvals })]);
      yield turn.completed(JSON.stringify(turn.message.parts.map((part) => part.data)));
    });
    const page = new Page(client);
    await page.say("Go");
    expect(page.shown.at(-1)).toEqual(["assistant", "May I?"]);
    const open = page.agent.pendingInterrupts;
    expect(open.map(({ reason, metadata }) => [reason, metadata?.["toolName"], metadata?.["input"]])).toEqual(
      approvals.map(({ toolName, input }) => ["confirmation", toolName, input]),
    );
    const payloads = [{ approved: true }, { approved: "yes", reason: "Too much" }, true];
    const resume = open.map(({ id }, at) =>
      at < 3
        ? { interruptId: id, status: "resolved" as const, payload: payloads[at] }
        : { interruptId: id, status: "cancelled" as const, payload: { approved: true } },
    );
    await page.run({ resume });
    expect(JSON.parse(String(page.shown.at(-1)?.[1]))).toEqual([
      { approvalId: "a0", approved: true, digest: "sha-256:0" },
      { approvalId: "a1", approved: false, reason: "Too much", digest: "sha-256:1" },
      { approvalId: "a2", approved: true, digest: "sha-256:2" },
      { approvalId: "a3", approved: false, digest: "sha-256:3" },
    ]);
  });

  it("about credentials is an interrupt with its own reason", async () => {
    const [half, rest] = [gate(), gate()];
    const client = await serving(async function* (turn) {
      if (turn.number === 1) return yield turn.authRequired("Sign in at https://example.com/");
      yield* turn.stream(
        slowly(["You ", "have ", "mail"], 1, () => {
          half.open();
          return rest.opened;
        }),
      );
    });
    const page = new Page(client);
    await page.say("Mail?");
    expect(page.agent.pendingInterrupts).toMatchObject([{ reason: "a2a:auth_required" }]);
    const answered = page.say("Done");
    await half.opened;
    const later = page.reloaded(client);
    const connected = later.agent.connectAgent();
    await expect.poll(() => later.shown.at(-1)).toEqual(["assistant", "You "]);
    rest.open();
    await Promise.all([answered, connected]);
    expect([page.shown.at(-1), later.shown.at(-1)]).toEqual(Array(2).fill(["assistant", "You have mail"]));
  });

  it("in another thread does not block a new thread", async () => {
    const page = new Page(await serving(asking));
    await page.say("A trip");
    page.agent.threadId = crypto.randomUUID();
    page.agent.setMessages([]);
    expect(ended(await page.say("A trip"))).toMatchObject({ outcome: { type: "interrupt" } });
    expect(page.shown).toHaveLength(3);
  });
});

it("has each file, text and activity once, whatever its id and whenever it arrived", async () => {
  const client = await serving(async function* (turn) {
    yield turn.working("Looking");
    yield turn.artifact({ artifactId: "progress", parts: [text(`Part ${turn.number}. `)], open: true });
    yield turn.artifact({ parts: [file(new Uint8Array([turn.number]), { mediaType: "image/png" })] });
    if (turn.number === 1) return yield turn.inputRequired("More?");
    yield turn.completed("Done");
  });
  const page = new Page(client);
  await page.say("Photos");
  await page.say("Yes");
  const urls = page.agent.messages.flatMap(({ role, content }) => {
    const { url } = role === "activity" ? content : {};
    return url === undefined ? [] : [url];
  });
  expect(urls).toEqual(["AQ==", "Ag=="].map((bytes) => `data:image/png;base64,${bytes}`));
  expect(page.shown.findIndex(([, content]) => content === "More?")).toBeGreaterThan(
    page.shown.findIndex(([role, content]) => role === "activity" && JSON.stringify(content).includes("AQ==")),
  );
  expect(page.shown.filter(([role]) => role === "assistant").map(([, content]) => content)).toEqual([
    "Part 2. ",
    "More?",
    "Done",
  ]);
});

describe("connectAgent()", () => {
  const words = Array.from({ length: 40 }, (_, at) => `word ${at}, `);

  it("continues an answer in progress without loss or duplicates", async () => {
    const [half, rest] = [gate(), gate()];
    const client = await serving(async function* (turn) {
      if (turn.number === 1) {
        yield turn.artifact({ artifactId: "early", parts: [text("Earlier. "), data({ early: true })] });
        return yield turn.inputRequired("Go on?");
      }
      yield turn.working("Counting");
      yield* turn.stream(
        slowly(words, 20, () => {
          half.open();
          return rest.opened;
        }),
      );
    });
    const first = new Page(client, { onStop: "leave" });
    await first.say("Count");
    const running = first.say("Yes");
    await half.opened;
    await first.agent.detachActiveRun();
    await running;
    const page = first.reloaded(client);
    const connected = page.agent.connectAgent();
    await expect.poll(() => page.shown.map(([, content]) => content)).toContain(words.slice(0, 20).join(""));
    expect(page.agent.isRunning).toBe(true);
    rest.open();
    await connected;
    const expected = [
      ["user", "Count"],
      ["assistant", "Go on?"],
      ["user", "Yes"],
      ["assistant", "Earlier. "],
      ["activity", { artifactId: "early", data: { early: true } }],
      ["activity", { text: "Counting" }],
      ["assistant", words.join("")],
    ];
    expect(page.shown).toEqual(expected);
    const third = first.reloaded(client);
    await third.agent.connectAgent();
    await third.agent.connectAgent();
    expect(third.shown).toEqual(expected.filter(([, content]) => (content as { text?: string }).text === undefined));
  });

  it("shows an answer that ended while the thread was being read", async () => {
    const go = gate();
    const client = await serving(
      async function* (turn) {
        yield turn.artifact({ parts: [text("Wait.")], artifactId: "a", open: true });
        await go.opened;
        yield turn.append("a", [text(" Done.")], { last: true });
      },
      lacking("SubscribeToTask", go.open),
    );
    const first = new Page(client, { onStop: "leave" });
    const running = first.say("Go");
    await expect.poll(() => first.shown).toHaveLength(2);
    first.agent.abortRun();
    await running;
    const page = first.reloaded(client);
    await page.agent.connectAgent();
    await expect
      .poll(async () => {
        await page.agent.connectAgent();
        return page.shown;
      })
      .toEqual([
        ["user", "Go"],
        ["assistant", "Wait. Done."],
      ]);
  });

  it("reads nothing from an agent that does not list tasks, but still talks to it", async () => {
    const client = await serving((turn) => turn.reply("Hello"), lacking("ListTasks"));
    const initialMessages: Message[] = [{ id: "hello", role: "assistant", content: "Hi" }];
    const page = new Page(client, { initialMessages });
    await page.agent.connectAgent();
    await page.say("Hi");
    expect(page.shown.map(([, content]) => content)).toEqual(["Hi", "Hi", "Hello"]);
  });

  it("shows a failure, and shows nothing for a new thread", async () => {
    const client = await serving(async function* (turn) {
      yield turn.failed("The station is closed");
    });
    const first = new Page(client);
    await first.say("Weather?");
    const page = first.reloaded(client);
    await page.agent.connectAgent();
    expect(ended(page.events)?.type).toBe(EventType.RUN_FINISHED);
    expect(page.shown).toEqual([
      ["user", "Weather?"],
      ["assistant", "The station is closed"],
    ]);
    const initialMessages: Message[] = [{ id: "hello", role: "assistant", content: "Hello" }];
    const empty = new Page(client, { initialMessages });
    await empty.agent.connectAgent();
    expect(empty.shown).toEqual([["assistant", "Hello"]]);
  });
});

describe("abortRun()", () => {
  it.each(["cancel", "leave"] as const)("with onStop %s", async (onStop) => {
    const [running, go] = [gate(), gate()];
    const client = await serving(async function* (turn) {
      yield turn.artifact({ parts: [text("Wait")] });
      running.open();
      await Promise.race([go.opened, new Promise((resolve) => turn.signal.addEventListener("abort", resolve))]);
      yield turn.completed("Done");
    });
    const page = new Page(client, { onStop });
    const events = page.say("Go");
    await running.opened;
    await expect.poll(() => page.shown).toHaveLength(2);
    page.agent.abortRun();
    expect(ended(await events)).toMatchObject({ type: EventType.RUN_FINISHED, outcome: { type: "cancelled" } });
    const state = async (): Promise<string | undefined> =>
      (await client.listTasks({ contextId: page.agent.threadId })).tasks[0]?.status.state;
    if (onStop === "cancel") return expect.poll(state).toBe("TASK_STATE_CANCELED");
    go.open();
    await expect.poll(state).toBe("TASK_STATE_COMPLETED");
  });
});

it("abortRun() before the agent is reached sends nothing", async () => {
  let count = 0;
  const client = await serving((turn) => {
    count += 1;
    return turn.reply("Hello");
  });
  const page = new Page(client);
  page.agent.subscribe({ onRunStartedEvent: () => page.agent.abortRun() });
  expect(typesOf(await page.say("Hi"))).toEqual([EventType.RUN_STARTED, EventType.RUN_FINISHED]);
  await page.agent.connectAgent();
  expect(count).toBe(0);
});

test.each(["0.0.58", "2.0.0"])("rejects version %s of the client library", (version) => {
  class Old extends A2AAgent {
    override get maxProtocolVersion(): string {
      return version;
    }
  }
  expect(() => new Old({ agent: "http://127.0.0.1:1/" })).toThrow(
    `@parley/frameworks/ag-ui needs @ag-ui/client >=0.0.59 <2, found ${version}`,
  );
});
