import { A2AError, answerAuthorization, connect, connectJsonRpc, type ConnectOptions } from "@parley/a2a";
import type { Message, Task } from "@parley/a2a/model";
import type { Interceptor } from "@parley/a2a/protocol";
import { data, defineAgent, serve, text, type Agent, type ServeOptions } from "@parley/node";
import { messagesOf, RemoteAgent, type ConversationSnapshot, type ConversationStorage } from "@parley/react";
import { beforeEach, describe, expect, onTestFinished, test, vi } from "vitest";

/* Conversations with agents, without React: the stores that the hooks subscribe to. */

// Stores are shared only in a page, not on a server.
beforeEach(() => {
  vi.stubGlobal("window", {});
  return () => vi.unstubAllGlobals();
});

type OnMessage = Parameters<typeof defineAgent>[0]["onMessage"];

const agentWith = (onMessage: OnMessage): Agent =>
  defineAgent({
    name: "Talker",
    description: "Talks.",
    version: "1.0.0",
    skills: [],
    defaultInputModes: ["text/plain", "application/json"],
    onMessage,
  });

async function serving(onMessage: OnMessage, options: ServeOptions = {}): Promise<string> {
  const server = await serve(agentWith(onMessage), { port: 0, logger: false, ...options });
  onTestFinished(() => server.close({ grace: 0 }));
  return new URL(server.url).origin;
}

const echo: OnMessage = async function* (turn) {
  yield turn.completed(`Heard ${turn.text}`);
};

type Store = ReturnType<RemoteAgent["conversation"]>;

/** Follows a conversation until the test ends. */
function followed(store: Store): Store {
  onTestFinished(store.subscribe(() => undefined));
  return store;
}

const shown = ({ messages }: ConversationSnapshot): readonly string[] =>
  messages.map(
    ({ role, parts, failure = "" }) => `${role}: ${parts.map((part) => part.text ?? "…").join("")}${failure}`,
  );

const until = (store: Store, status: ConversationSnapshot["status"]): Promise<void> =>
  vi.waitFor(() => expect(store.getSnapshot().status).toBe(status), 20_000);

/** A storage that exposes its entries. */
function storage(entries = new Map<string, string>()): ConversationStorage & { readonly entries: Map<string, string> } {
  return {
    entries,
    getItem: (key) => entries.get(key) ?? null,
    setItem: (key, value) => entries.set(key, value),
  };
}

/** Waits for `change` before each call of an operation. */
function before(operation: string, change: () => unknown): Interceptor {
  return (next) => ({
    async call(called, request, context) {
      if (called === operation) await change();
      return next.call(called, request, context);
    },
    stream: (called, request, context) => next.stream(called, request, context),
  });
}

/** A page that can be offline. */
function network(): { isAway: boolean; readonly options: ConnectOptions } {
  const state = { isAway: true };
  const options: ConnectOptions = {
    fetch: (to, init) => (state.isAway ? Promise.reject(new TypeError("fetch failed")) : fetch(to, init)),
    retry: false,
  };
  return Object.assign(state, { options });
}

describe("a conversation", () => {
  test("sends parallel messages in order, in one context", async () => {
    const store = followed(new RemoteAgent(await serving(echo)).conversation());
    expect(store.getSnapshot()).toMatchObject({ status: "ready", messages: [], contextId: undefined });
    const sends = [store.sendMessage("one"), store.sendMessage("two")];
    expect(store.getSnapshot()).toMatchObject({ status: "submitted" });
    expect(shown(store.getSnapshot())).toEqual(["user: one", "user: two"]);
    await Promise.all(sends);
    await until(store, "ready");
    expect(shown(store.getSnapshot())).toEqual([
      "user: one",
      "assistant: Heard one",
      "user: two",
      "assistant: Heard two",
    ]);
  });

  test("is shared by its id, and new for each call on a server", async () => {
    const agent = new RemoteAgent("http://agent.invalid");
    expect(agent.conversation({ id: "a" })).toBe(agent.conversation({ id: "a" }));
    expect(agent.conversation({ id: "a" })).not.toBe(agent.conversation({ id: "b" }));
    expect(agent.task("t")).toBe(agent.task("t"));
    vi.unstubAllGlobals();
    expect(agent.conversation({ id: "a" })).not.toBe(agent.conversation({ id: "c" }));
    expect(agent.conversation({ id: "c" })).not.toBe(agent.conversation({ id: "c" }));
    expect(agent.task("u")).not.toBe(agent.task("u"));
  });

  test("shows direct replies, even with a client without watch()", async () => {
    const client = await connectJsonRpc(
      await serving(async function* (turn) {
        if (turn.text === "work") return yield turn.completed("Worked");
        yield turn.reply(`Heard ${turn.text}`);
      }),
    );
    const store = followed(new RemoteAgent(client).conversation());
    await store.sendMessage("one");
    await store.sendMessage("work");
    await until(store, "ready");
    expect(shown(store.getSnapshot())).toEqual([
      "user: one",
      "assistant: Heard one",
      "user: work",
      "assistant: Worked",
    ]);
  });

  test("polls an agent that does not stream", async () => {
    const url = await serving(echo);
    const { card } = await connect(url);
    const client = await connect({ ...card, capabilities: { ...card.capabilities, streaming: false } });
    const store = followed(new RemoteAgent(client).conversation());
    await store.sendMessage("one");
    await until(store, "ready");
    expect(shown(store.getSnapshot())).toEqual(["user: one", "assistant: Heard one"]);
  });

  test("keeps a message whose connection broke, and retries it with the same id", async () => {
    let isAway = true;
    const heard: string[] = [];
    const cut: Interceptor = (next) => ({
      call: async (operation, request, context) => {
        const answer = await next.call(operation, request, context);
        if (operation === "SendMessage" && isAway) throw new A2AError("ConnectionLost", "Gone");
        return answer;
      },
      stream: (operation, request, context) => next.stream(operation, request, context),
    });
    const url = await serving(async function* (turn) {
      heard.push(turn.message.messageId);
      yield turn.completed(`Heard ${turn.text}`);
    });
    const kept = storage();
    const store = followed(new RemoteAgent(url, { interceptors: [cut], retry: false }).conversation({ storage: kept }));
    await store.sendMessage("one");
    expect(store.getSnapshot()).toMatchObject({ status: "error" });
    expect(shown(store.getSnapshot())).toEqual(["user: one"]);
    const [entry = ""] = kept.entries.values();
    expect(JSON.parse(entry)).toMatchObject({ unsent: [{ messageId: store.getSnapshot().messages[0]?.id }] });
    isAway = false;
    await store.regenerate();
    await until(store, "ready");
    expect(shown(store.getSnapshot())).toEqual(["user: one", "assistant: Heard one"]);
    expect(heard).toEqual([store.getSnapshot().messages[0]?.id]);
  });

  test("stops its task, even after a failed message", async () => {
    let isRefused = false;
    const refuse = before("SendMessage", () => {
      if (isRefused) throw new A2AError("InvalidParams", "No");
    });
    const url = await serving(async function* (turn) {
      yield turn.working("Looking");
      await new Promise((resolve) => turn.signal.addEventListener("abort", resolve));
    });
    const store = followed(new RemoteAgent(url, { interceptors: [refuse] }).conversation());
    await store.sendMessage("one");
    await until(store, "streaming");
    isRefused = true;
    await store.sendMessage("two");
    expect(store.getSnapshot()).toMatchObject({ status: "error" });
    store.clearError();
    await store.stop();
    await until(store, "ready");
    const { contextId = "" } = store.getSnapshot();
    const { tasks } = await (await connect(url)).listTasks({ contextId });
    expect(tasks.map(({ status }) => status.state)).toEqual(["TASK_STATE_CANCELED"]);
  });

  test("does not resend a message in flight, and retries failed messages in order", async () => {
    const net = network();
    const sent: string[] = [];
    const url = await serving(echo);
    const note: Interceptor = (next) => ({
      call: (operation, request, context) => {
        if (operation === "SendMessage") sent.push(JSON.stringify(request));
        return next.call(operation, request, context);
      },
      stream: (operation, request, context) => next.stream(operation, request, context),
    });
    const agent = new RemoteAgent(url, { ...net.options, interceptors: [note] });
    const store = followed(agent.conversation());
    const sends = [store.sendMessage("one"), store.sendMessage("two")];
    await until(store, "error");
    // The second message waits for the first, or has also failed.
    await Promise.all([store.regenerate(), ...sends]);
    expect(store.getSnapshot().messages.map(({ parts: [part] }) => part?.text)).toEqual(["one", "two"]);
    net.isAway = false;
    await store.regenerate();
    await until(store, "ready");
    expect(shown(store.getSnapshot())).toEqual([
      "user: one",
      "assistant: Heard one",
      "user: two",
      "assistant: Heard two",
    ]);
    expect(sent).toHaveLength(2);
  });

  test("stays in memory while a component shows it, or if its content exists nowhere else", async () => {
    const url = await serving(echo);
    const kept = storage();
    const agent = new RemoteAgent(url);
    const [shownOne, spoken, read] = [
      agent.conversation({ id: "shown", storage: kept }),
      agent.conversation({ id: "spoken" }),
      agent.conversation({ id: "read", storage: kept }),
    ];
    followed(shownOne);
    for (const store of [spoken, read]) {
      const leave = store.subscribe(() => undefined);
      await store.sendMessage("one");
      await until(store, "ready");
      leave();
    }
    for (let count = 0; count < 200; count += 1) agent.conversation({ id: `other ${count}` });
    expect(agent.conversation({ id: "shown" })).toBe(shownOne);
    expect(agent.conversation({ id: "spoken" })).toBe(spoken);
    expect(agent.conversation({ id: "other 199" })).toBe(agent.conversation({ id: "other 199" }));
    const again = followed(agent.conversation({ id: "read", storage: kept }));
    expect(again).not.toBe(read);
    await until(again, "ready");
    expect(shown(again.getSnapshot())).toEqual(shown(read.getSnapshot()));
  });

  test("retries a message unchanged, whatever its task is now", async () => {
    const heard: string[] = [];
    let isLosing = false;
    const lose: Interceptor = (next) => ({
      async call(operation, request, context) {
        const answer = await next.call(operation, request, context);
        if (operation === "SendMessage" && isLosing) throw new A2AError("ConnectionLost", "Gone");
        return answer;
      },
      stream: (operation, request, context) => next.stream(operation, request, context),
    });
    const url = await serving(async function* (turn) {
      heard.push(turn.text);
      if (turn.number === 1) yield turn.inputRequired("Go on?");
      else yield turn.completed("Done");
    });
    const store = followed(new RemoteAgent(url, { interceptors: [lose], retry: false }).conversation());
    await store.sendMessage("one");
    await vi.waitFor(() => expect(store.getSnapshot().question).toBeDefined(), 20_000);
    isLosing = true;
    await store.sendMessage("Yes");
    await vi.waitFor(() => expect(shown(store.getSnapshot()).join()).toContain("Done"), 20_000);
    isLosing = false;
    await store.regenerate();
    await until(store, "ready");
    expect(shown(store.getSnapshot())).toEqual(["user: one", "assistant: Go on?", "user: Yes", "assistant: Done"]);
    expect(heard).toEqual(["one", "Yes"]);
  });

  test("reports an unreachable agent, and connects with the next message", async () => {
    const url = await serving(echo);
    let isAway = true;
    const fetching: typeof fetch = (...args) =>
      isAway ? Promise.reject(new TypeError("fetch failed")) : fetch(...args);
    const agent = new RemoteAgent(url, { fetch: (to, init) => fetching(to, init), retry: false });
    const store = followed(agent.conversation());
    await store.sendMessage("one");
    expect(store.getSnapshot()).toMatchObject({ status: "error", error: { code: "ConnectionFailed" } });
    store.clearError();
    expect(store.getSnapshot()).toMatchObject({ status: "ready", error: undefined });
    isAway = false;
    await store.sendMessage("two");
    await until(store, "ready");
    expect(shown(store.getSnapshot())).toEqual(["user: one", "user: two", "assistant: Heard two"]);
  });
});

describe("an earlier conversation", () => {
  test("is restored from the storage, even if the agent does not list tasks", async () => {
    const url = await serving(echo);
    const kept = storage();
    const before = followed(new RemoteAgent(url).conversation({ id: "trip", storage: kept }));
    await before.sendMessage("one");
    await before.sendMessage("two");
    await until(before, "ready");
    expect([...kept.entries.keys()]).toEqual([`parley:${url}:trip`]);
    const unlisted: Interceptor = (next) => ({
      call: (operation, request, context) => {
        if (operation === "ListTasks") throw new A2AError("UnsupportedOperation", "No lists here");
        return next.call(operation, request, context);
      },
      stream: (operation, request, context) => next.stream(operation, request, context),
    });
    const [[key = "", entry = ""] = []] = kept.entries;
    const saved = JSON.parse(entry) as { readonly taskIds: readonly string[] };
    const gone = "00000000-0000-7000-8000-000000000000";
    kept.entries.set(key, JSON.stringify({ ...saved, taskIds: [gone, ...saved.taskIds] }));
    for (const interceptors of [[], [unlisted]]) {
      const slow = { ...kept, getItem: async (key: string) => kept.getItem(key) };
      const after = followed(new RemoteAgent(url, { interceptors }).conversation({ id: "trip", storage: slow }));
      expect(after.getSnapshot().status).toBe("submitted");
      await until(after, "ready");
      expect(shown(after.getSnapshot())).toEqual(shown(before.getSnapshot()));
      expect(after.getSnapshot().contextId).toBe(before.getSnapshot().contextId);
    }
    const unsent = [{ messageId: "m3", role: "ROLE_USER", parts: [{ text: "three" }] }];
    kept.entries.set(key, JSON.stringify({ ...saved, unsent }));
    const last = followed(new RemoteAgent(url).conversation({ id: "trip", storage: kept }));
    await vi.waitFor(() => expect(shown(last.getSnapshot()).at(-1)).toBe("assistant: Heard three"), 20_000);
    expect(shown(last.getSnapshot())).toEqual([
      ...shown(before.getSnapshot()),
      "user: three",
      "assistant: Heard three",
    ]);
    expect(last.getSnapshot().contextId).toBe(before.getSnapshot().contextId);
  });

  test("keeps all messages that were written offline, across several reloads", async () => {
    const net = network();
    const url = await serving(echo);
    const kept = storage();
    const first = followed(new RemoteAgent(url, net.options).conversation({ storage: kept }));
    await Promise.all([first.sendMessage("one"), first.sendMessage("two")]);
    const second = followed(new RemoteAgent(url, net.options).conversation({ storage: kept }));
    await until(second, "error");
    await second.sendMessage("three");
    net.isAway = false;
    const third = followed(new RemoteAgent(url, net.options).conversation({ storage: kept }));
    const last = "assistant: Heard three";
    await vi.waitFor(() => expect(shown(third.getSnapshot()).at(-1)).toBe(last), 20_000);
    const all = ["one", "two", "three"].flatMap((said) => [`user: ${said}`, `assistant: Heard ${said}`]);
    expect(shown(third.getSnapshot())).toEqual(all);
    const [entry = ""] = kept.entries.values();
    expect(JSON.parse(entry)).toMatchObject({ unsent: [] });
  });

  test("keeps a message whose answer was lost, whatever context the agent chose", async () => {
    const heard: string[] = [];
    const url = await serving(async function* (turn) {
      heard.push(turn.text);
      yield turn.completed(`Heard ${turn.text}`);
    });
    const kept = storage();
    const first = followed(new RemoteAgent(url).conversation({ storage: kept }));
    await first.sendMessage("one");
    await until(first, "ready");
    const message: Message = { messageId: crypto.randomUUID(), role: "ROLE_USER", parts: [{ text: "two" }] };
    await (await connect(url)).sendMessage(message);
    const [[key = "", entry = ""] = []] = kept.entries;
    const saved = JSON.parse(entry) as object;
    kept.entries.set(key, JSON.stringify({ ...saved, unsent: [message], tried: [message.messageId] }));
    for (const time of ["sent again", "read again"]) {
      const store = followed(new RemoteAgent(url).conversation({ storage: kept }));
      await vi.waitFor(() => expect(shown(store.getSnapshot()), time).toHaveLength(4), 20_000);
      await until(store, "ready");
      expect(shown(store.getSnapshot()).toSorted(), time).toEqual([
        "assistant: Heard one",
        "assistant: Heard two",
        "user: one",
        "user: two",
      ]);
    }
    expect(heard).toEqual(["one", "two"]);
  });

  test("keeps a message that was written while the page was reading the conversation", async () => {
    const url = await serving(echo);
    const kept = storage();
    const first = followed(new RemoteAgent(url).conversation({ storage: kept }));
    await first.sendMessage("one");
    await until(first, "ready");
    const hang = before("ListTasks", () => new Promise(() => undefined));
    const second = followed(new RemoteAgent(url, { interceptors: [hang] }).conversation({ storage: kept }));
    void second.sendMessage("two");
    await vi.waitFor(() => expect([...kept.entries.values()].join("")).toContain("two"), 20_000);
    const third = followed(new RemoteAgent(url).conversation({ storage: kept }));
    await vi.waitFor(() => expect(shown(third.getSnapshot()).at(-1)).toBe("assistant: Heard two"), 20_000);
    expect(shown(third.getSnapshot())).toEqual([
      "user: one",
      "assistant: Heard one",
      "user: two",
      "assistant: Heard two",
    ]);
  });

  test("is restored from its context or its task", async () => {
    const url = await serving(echo);
    const { task } = await (await connect(url)).sendMessage("one");
    const { id: taskId = "", contextId = "" } = task ?? {};
    for (const init of [{ contextId }, { taskId }]) {
      const store = followed(new RemoteAgent(url).conversation(init));
      await until(store, "ready");
      expect(shown(store.getSnapshot())).toEqual(["user: one", "assistant: Heard one"]);
      await store.sendMessage("two");
      await until(store, "ready");
      expect(store.getSnapshot().contextId).toBe(contextId);
    }
  });

  const forged = [
    { parts: [null] },
    { parts: [{ text: { a: 1 } }] },
    { parts: [{ url: 5 }] },
    { role: "ROLE_AGENT" },
    { taskId: {} },
    { messageId: "" },
  ].map((change) =>
    JSON.stringify({ unsent: [{ messageId: "m", role: "ROLE_USER", parts: [{ text: "x" }], ...change }] }),
  );

  test("requests only as many tasks as a page shows, however many are in the storage", async () => {
    let count = 0;
    const url = await serving(echo);
    const entry = JSON.stringify({ taskIds: Array.from({ length: 1000 }, (_, at) => `task-${at}`) });
    const options = { interceptors: [before("GetTask", () => (count += 1))] };
    const entries = { getItem: () => entry, setItem: () => undefined };
    const store = followed(new RemoteAgent(url, options).conversation({ storage: entries }));
    await until(store, "ready");
    expect(count).toBe(100);
  });

  test.each(["junk", "[]", '{"contextId":5,"taskIds":{},"unsent":[null,{"messageId":1}]}', ...forged])(
    "starts anew if the storage contains %s",
    async (junk) => {
      const entries = { getItem: () => junk, setItem: () => undefined };
      const store = followed(new RemoteAgent(await serving(echo)).conversation({ storage: entries }));
      await until(store, "ready");
      await store.sendMessage("one");
      await until(store, "ready");
      expect(shown(store.getSnapshot())).toEqual(["user: one", "assistant: Heard one"]);
    },
  );

  test("stores only the ids if messages do not fit, and works without a storage", async () => {
    const kept = storage();
    const small: ConversationStorage = {
      ...kept,
      setItem: (key, value) => {
        if (value.length > 200) throw new Error("QuotaExceededError");
        kept.setItem(key, value);
      },
    };
    const full: ConversationStorage = { getItem: () => null, setItem: () => Promise.reject(new Error("Full")) };
    const url = await serving(echo);
    for (const each of [small, full]) {
      const store = followed(new RemoteAgent(url).conversation({ storage: each }));
      await store.sendMessage("x".repeat(300));
      await until(store, "ready");
      expect(store.getSnapshot().error).toBe(undefined);
    }
    expect([...kept.entries.values()].join("")).toMatch(/"taskIds":\["[^"]+"\],"unsent":\[\]/);
  });

  test("neither stores nor shows credentials", async () => {
    const writes: string[] = [];
    const kept: ConversationStorage = { getItem: () => null, setItem: (_, value) => writes.push(value) };
    const url = await serving(async function* (turn) {
      const secret = yield* turn.authorize({ form: "secret", reason: "The code", inMessage: true });
      yield turn.completed(`It has ${secret.length} letters`);
    });
    const store = followed(new RemoteAgent(url).conversation({ storage: kept }));
    await store.sendMessage("Open");
    await vi.waitFor(() => expect(store.getSnapshot().question).toMatchObject({ kind: "auth" }), 20_000);
    const { authorization } = store.getSnapshot().question ?? {};
    await store.sendMessage(answerAuthorization({ id: authorization?.id ?? "" }, { credential: "xyzzy" }));
    await vi.waitFor(() => expect(shown(store.getSnapshot()).at(-1)).toContain("It has 5 letters"), 20_000);
    expect(writes.join("") + JSON.stringify(store.getSnapshot())).not.toContain("xyzzy");
  });
});

test("a message in flight is not retried automatically with an agent that could run it twice", async () => {
  const url = await serving(echo);
  const { card } = await connect(url);
  const client = await connect({ ...card, capabilities: { ...card.capabilities, extensions: [] } });
  const unsent = [{ messageId: "m1", role: "ROLE_USER", parts: [{ text: "one" }] }];
  const kept = { getItem: () => JSON.stringify({ taskIds: [], unsent }), setItem: () => undefined };
  const store = followed(new RemoteAgent(client).conversation({ storage: kept }));
  await until(store, "error");
  expect(store.getSnapshot().error?.message).toContain("The page was closed");
  expect(shown(store.getSnapshot())).toEqual(["user: one"]);
  await store.regenerate();
  await until(store, "ready");
  expect(shown(store.getSnapshot())).toEqual(["user: one", "assistant: Heard one"]);
});

test("lost decisions are sent again", async () => {
  let isAway = false;
  const failing: Interceptor = (next) => ({
    call: (operation, request, context) => {
      if (isAway) throw new A2AError("ConnectionFailed", "Away");
      return next.call(operation, request, context);
    },
    stream: (operation, request, context) => next.stream(operation, request, context),
  });
  const approvals = [{ approvalId: "a", toolCallId: "c", toolName: "pay", input: 5 }];
  const url = await serving(async function* (turn) {
    if (turn.number === 1) return yield turn.inputRequired([text("Pay?"), data({ approvals })]);
    yield turn.completed(`Paid ${JSON.stringify(turn.message.parts[0]?.data)}`);
  });
  const agent = new RemoteAgent(url, { interceptors: [failing], retry: false });
  const store = followed(agent.conversation());
  await store.sendMessage("Go");
  await vi.waitFor(() => expect(store.getSnapshot().question?.approvals).toHaveLength(1), 20_000);
  isAway = true;
  await store.addToolApprovalResponse({ id: "a", approved: true });
  expect(store.getSnapshot()).toMatchObject({ status: "error", question: { approvals: [{ approved: true }] } });
  isAway = false;
  await store.regenerate();
  const paid = 'assistant: Paid {"approvalId":"a","approved":true}';
  await vi.waitFor(() => expect(shown(store.getSnapshot()).at(-1)).toBe(paid), 20_000);
  expect(shown(store.getSnapshot())).toEqual(["user: Go", "assistant: Pay?", paid]);
});

test("a decision applies only to the call that the user saw", async () => {
  const heard: string[] = [];
  const callsOf = (euros: number): readonly object[] => [
    { approvalId: "a", toolCallId: "c1", toolName: "pay", input: { euros }, digest: `pay ${euros}` },
    { approvalId: "b", toolCallId: "c2", toolName: "book", input: {}, digest: "book" },
  ];
  const url = await serving(async function* (turn) {
    heard.push(JSON.stringify(turn.message.parts));
    if (turn.number < 3)
      yield turn.inputRequired([text("Pay?"), data({ approvals: callsOf(turn.number === 1 ? 5 : 5000) } as never)]);
    else yield turn.completed("Done");
  });
  const store = followed(new RemoteAgent(url).conversation());
  const asked = (): readonly (boolean | undefined)[] | undefined =>
    store.getSnapshot().question?.approvals.map(({ approved }) => approved);
  await store.sendMessage("Go");
  await vi.waitFor(() => expect(asked()).toEqual([undefined, undefined]), 20_000);
  await store.addToolApprovalResponse({ id: "a", approved: true });
  expect(asked()).toEqual([true, undefined]);
  await store.sendMessage("Wait");
  await vi.waitFor(() => expect(store.getSnapshot().question?.approvals[0]?.digest).toBe("pay 5000"), 20_000);
  await store.addToolApprovalResponse({ id: "b", approved: true });
  expect(asked()).toEqual([undefined, true]);
  expect(heard).toHaveLength(2);
  // A second click while the answer is in flight sends nothing.
  const clicks = [1, 2].map(() => store.addToolApprovalResponse({ id: "a", approved: false }));
  await Promise.all(clicks);
  await until(store, "ready");
  expect(heard.slice(2)).toEqual([
    JSON.stringify([
      { data: { approvalId: "a", approved: false, digest: "pay 5000" } },
      { data: { approvalId: "b", approved: true, digest: "book" } },
    ]),
  ]);
  const { contextId = "" } = store.getSnapshot();
  const [task] = (await (await connect(url)).listTasks({ contextId })).tasks;
  expect(task?.history?.filter(({ role }) => role === "ROLE_USER")).toHaveLength(3);
});

test("a cleared error does not return with the next one", async () => {
  let isAway = false;
  const failing: Interceptor = (next) => ({
    call: (operation, request, context) => {
      if (isAway) throw new A2AError("ConnectionFailed", "Away");
      return next.call(operation, request, context);
    },
    stream: (operation, request, context) => next.stream(operation, request, context),
  });
  const url = await serving(async function* (turn) {
    yield turn.rejected("Closed");
  });
  const agent = new RemoteAgent(url, { interceptors: [failing], retry: false });
  const store = followed(agent.conversation());
  await store.sendMessage("one");
  await vi.waitFor(() => expect(store.getSnapshot().error?.message).toBe("Closed"), 20_000);
  isAway = true;
  await store.sendMessage("two");
  expect(store.getSnapshot().error?.message).toBe("Away");
  store.clearError();
  expect(store.getSnapshot()).toMatchObject({ status: "ready", error: undefined });
});

describe("bad input", () => {
  const said = (messageId: string, role: Message["role"], words: string): Message => ({
    messageId,
    role,
    parts: [{ text: words }],
  });
  const ended = (message: Message): Task["status"] => ({ state: "TASK_STATE_COMPLETED", message });

  test("shows all messages of an agent that reuses one id, and each repeated message once", async () => {
    const history = [
      said("u1", "ROLE_USER", "Trip"),
      said("x", "ROLE_AGENT", "Where to?"),
      said("u2", "ROLE_USER", "Basel"),
      said("u2", "ROLE_USER", "Basel"),
    ];
    const first: Task = { id: "t1", contextId: "c", history, status: ended(said("x", "ROLE_AGENT", "Booked")) };
    const repeated = [...history, said("x", "ROLE_AGENT", "Booked"), said("u3", "ROLE_USER", "Thanks")];
    const second: Task = {
      id: "t2",
      contextId: "c",
      history: [...repeated, said("y", "ROLE_AGENT", "Bye")],
      status: ended(said("y", "ROLE_AGENT", "Bye")),
    };
    const store = new RemoteAgent("http://agent.invalid").conversation({ tasks: [first, second] });
    expect(shown(store.getSnapshot())).toEqual([
      "user: Trip",
      "assistant: Where to?",
      "user: Basel",
      "assistant: Booked",
      "user: Thanks",
      "assistant: Bye",
    ]);
    const again: Task = { ...first, id: "t3", artifacts: [{ artifactId: "a", parts: [{ text: "Ticket" }] }] };
    const { messages } = new RemoteAgent("http://agent.invalid").conversation({ tasks: [first, again] }).getSnapshot();
    expect(messages.at(-1)?.parts).toEqual([{ text: "Ticket" }, { text: "Booked" }]);
    expect(new Set(messages.map(({ id }) => id)).size).toBe(messages.length);
  });

  test("shows the data of artifacts, whatever their names", () => {
    const parts = [{ data: { approvals: 3 } }, { data: { type: "object" }, mediaType: "application/schema+json" }];
    const task: Task = {
      id: "t",
      contextId: "c",
      artifacts: [{ artifactId: "__proto__", parts }],
      status: { state: "TASK_STATE_COMPLETED" },
    };
    expect(messagesOf(task)[0]?.parts).toEqual(parts);
  });

  test("drops links other than http(s), and incomplete approvals", async () => {
    const url = await serving(async function* (turn) {
      const links = ["javascript:alert(1)", "https://example.com/a", "data:text/html,x", "//x"];
      yield turn.artifact({ parts: links.map((link) => ({ url: link })) });
      const approvals = [null, 5, { approvalId: "a" }, { approvalId: "b", toolCallId: "c", toolName: "pay" }];
      yield turn.inputRequired([text("Pay?"), data({ approvals })]);
    });
    const store = followed(new RemoteAgent(url).conversation());
    await store.sendMessage("Go");
    await vi.waitFor(() => expect(store.getSnapshot().question).toBeDefined(), 20_000);
    const { question, messages } = store.getSnapshot();
    expect(messages.at(-1)?.parts).toEqual([{ url: "https://example.com/a" }, { text: "Pay?" }]);
    expect(question?.approvals).toEqual([{ id: "b", toolCallId: "c", toolName: "pay", input: null }]);
    await store.addToolApprovalResponse({ id: "unknown", approved: true });
    expect(store.getSnapshot().question).toEqual(question);
  });

  test("reports a missing task, and follows it after a retry", async () => {
    const url = await serving(echo);
    const feed = new RemoteAgent(url).task("00000000-0000-7000-8000-000000000000");
    onTestFinished(feed.subscribe(() => undefined));
    await vi.waitFor(() => expect(feed.getSnapshot()).toMatchObject({ error: { code: "TaskNotFound" } }), 20_000);
    feed.retry();
    expect(feed.getSnapshot().error).toBe(undefined);
    await vi.waitFor(() => expect(feed.getSnapshot()).toMatchObject({ error: { code: "TaskNotFound" } }), 20_000);
    await expect(feed.stop()).rejects.toMatchObject({ code: "TaskNotFound" });
  });
});
