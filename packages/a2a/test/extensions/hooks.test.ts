import { describe, expect, onTestFinished, test } from "vitest";
import { createHandler } from "@parley/server/internal/handler";
import { defineAgent } from "@parley/server/internal/agent/index";
import { memoryStore, type Store } from "@parley/server/internal/store/index";
import { A2AError, type Message, type StreamResponse } from "../../src/model/index.ts";
import type { Extension, StreamItem } from "../../src/protocol/index.ts";
import { harness, type Harness, type OnMessage } from "../../../server/test/engine/support.ts";

const uri = "https://example.com/extensions/toy/v1";
const active = { extensions: [uri] };

/** Serves an agent with extensions on its card. */
function extended(onMessage: OnMessage, extensions: readonly Extension[], store: Store = memoryStore()): Harness {
  const declared = extensions.map((extension) => ({ uri: extension.uri }));
  return harness(onMessage, {
    store,
    extensions,
    card: { capabilities: { streaming: true, extensions: declared } },
  });
}

/** Yields the message as an artifact. */
async function* echo(turn: Parameters<OnMessage>[0]) {
  yield turn.artifact({ artifactId: "echo", parts: [{ text: turn.text }] });
}

const texts = (parts: Message["parts"] = []): readonly unknown[] => parts.map(({ text }) => text);

/** Creates a toy extension, which stores numbers only as handles, stamps artifacts, and greets readers. */
function toy(vault: Map<string, string> = new Map()): Extension {
  return {
    uri,
    description: "A toy",
    onAccept({ message }) {
      const parts = message.parts.map((part) => {
        if (part.text === undefined) return part;
        const text = part.text.replace(/\d{4,}/g, (secret) => {
          const handle = `#${vault.size}`;
          vault.set(handle, secret);
          return handle;
        });
        return { ...part, text };
      });
      return { message: { ...message, parts } };
    },
    onAppend: (event) => (event.kind === "artifact" ? { ...event, metadata: { stamped: true } } : event),
    onDeliver: (event) =>
      event.task === undefined
        ? event
        : { task: { ...event.task, metadata: { ...event.task.metadata, hello: "reader" } } },
  };
}

describe("a toy extension with all three hooks", () => {
  test("redacts a secret before it is stored, stamps stored events, and changes them for readers", async () => {
    const vault = new Map<string, string>();
    const { send, get, store } = extended(echo, [toy(vault)]);
    const task = await send("card 123456", active);
    expect(vault).toEqual(new Map([["#0", "123456"]]));
    expect(texts(task.artifacts?.[0]?.parts)).toEqual(["card #0"]);
    expect(task.metadata).toEqual({ hello: "reader" });
    const scope = { agent: "agent", owner: JSON.stringify([null, "anonymous"]) };
    const log = (await store.read(scope, task.id, { after: 0, limit: 10 }))?.records ?? [];
    expect(log.map(({ json }) => json).join()).not.toContain("123456");
    expect(log.find(({ kind }) => kind === "artifactUpdate")?.json).toContain('"metadata":{"stamped":true}');
    // A reader without the extension gets the stored task.
    expect((await get(task.id)).metadata).toBeUndefined();
  });

  test("does nothing in a call that has not activated it (A2A 1.0 §4.6)", async () => {
    const vault = new Map<string, string>();
    const { send } = extended(echo, [toy(vault)]);
    const task = await send("card 123456");
    expect([texts(task.artifacts?.[0]?.parts), task.metadata, vault.size]).toEqual([["card 123456"], undefined, 0]);
  });

  test("is declared by the card of a server, if the agent does not declare it", async () => {
    const own = { uri: "urn:own", description: "In the agent's words" };
    const agent = defineAgent({
      name: "Echo",
      description: "Echo",
      version: "1",
      skills: [],
      capabilities: { extensions: [own] },
      onMessage: echo,
    });
    const extensions = [
      { ...toy(), required: true },
      { uri: "urn:own", description: "In other words" },
    ];
    const handler = createHandler(agent, { publicUrl: "https://a.example", store: memoryStore(), extensions });
    onTestFinished(() => handler.close());
    const declared = handler.agents[0]?.card.capabilities.extensions ?? [];
    expect(declared).toContainEqual({ uri, description: "A toy", required: true });
    expect(declared.filter((each) => each.uri === "urn:own")).toEqual([own]);
  });
});

describe("onAccept", () => {
  test("runs for the first of repeated sends only; the others join by their original content", async () => {
    const vault = new Map<string, string>();
    const { send } = extended(echo, [toy(vault)]);
    const message = { messageId: "once" };
    const [first, second] = await Promise.all([
      send("card 123456", { ...active, message }),
      send("card 123456", { ...active, message }),
    ]);
    expect([second.id, vault.size]).toEqual([first.id, 1]);
    expect((await send("card 123456", { ...active, message })).id).toBe(first.id);
    expect(vault.size).toBe(1);
  });

  test("may be asynchronous, and runs for messages to a task, too; each hook sees the result of the previous one", async () => {
    const append = (more: string): Extension => ({
      uri: `urn:${more}`,
      onAccept: async ({ message }, { principal }) => {
        const [part] = message.parts;
        await Promise.resolve();
        return { message: { ...message, parts: [{ text: `${part?.text} ${more} ${principal.subject}` }] } };
      },
    });
    const both = { extensions: ["urn:a", "urn:b"], subject: "ada" };
    const { send } = extended(
      async function* (turn) {
        if (turn.number === 1) yield turn.inputRequired("And?");
        else yield* echo(turn);
      },
      [append("a"), append("b")],
    );
    const asked = await send("one", both);
    expect(texts(asked.history?.[0]?.parts)).toEqual(["one a ada b ada"]);
    const task = await send("two", { ...both, message: { taskId: asked.id } });
    expect(texts(task.artifacts?.[0]?.parts)).toEqual(["two a ada b ada"]);
  });

  test.each<[string, NonNullable<Extension["onAccept"]>, string]>([
    [
      "throws",
      () => {
        throw new Error("the vault at 10.0.0.7 is closed");
      },
      "the vault at 10.0.0.7 is closed",
    ],
    ["rejects", () => Promise.reject(new Error("the vault is closed")), "the vault is closed"],
    ["returns nothing", () => undefined as never, "It returned an invalid message"],
    ["returns another message", ({ message }) => ({ message: { ...message, messageId: "x" } }), "It changed messageId"],
    ["returns a value that cannot be stored", ({ message }) => ({ message: { ...message, parts: [] } }), "parts"],
  ])("that %s rejects the message: nothing is stored, and the send may be repeated", async (_, onAccept, told) => {
    let broken = true;
    const hook: Extension = { uri, onAccept: (input, call) => (broken ? onAccept(input, call) : input) };
    const { ask, send, service, store } = extended(echo, [hook]);
    const message = { messageId: "again" };
    const error = await ask("hi", { ...active, message }).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: "InternalError", message: "Internal error" });
    const { cause } = error as Error;
    expect(String(cause)).toContain(`onAccept of the extension ${uri} failed`);
    expect(String(cause)).toContain(told);
    const scope = { agent: "agent", owner: JSON.stringify([null, "anonymous"]) };
    expect((await store.list(scope, { limit: 10, bytes: 1e6, artifacts: false })).total).toBe(0);
    broken = false;
    expect((await send("hi", { ...active, message })).status.state).toBe("TASK_STATE_COMPLETED");
    expect(service).toBeDefined();
  });

  test("may reject with a protocol error", async () => {
    const refusing: Extension = {
      uri,
      onAccept() {
        throw new A2AError("PermissionDenied", "No cards here");
      },
    };
    const { ask } = extended(echo, [refusing]);
    await expect(ask("hi", active)).rejects.toMatchObject({ code: "PermissionDenied", message: "No cards here" });
  });
});

describe("onAppend", () => {
  test("sees each event of the agent once, and none of the engine; a direct answer too", async () => {
    const seen: unknown[] = [];
    const watching: Extension = {
      uri,
      onAppend(event, { taskId, contextId, message, extensions }) {
        seen.push([event.kind, typeof taskId, typeof contextId, texts(message.parts), extensions]);
        return event;
      },
    };
    const { send, ask } = extended(
      async function* (turn) {
        if (turn.text === "hello") return turn.reply("Hello");
        yield turn.working("Begun");
        yield turn.saveCheckpoint({ at: 1 });
        yield* echo(turn);
        return undefined;
      },
      [watching],
    );
    await send("work", active);
    await ask("hello", active);
    const told = (kind: string, text: string, task = "string") => [kind, task, "string", [text], [uri]];
    expect(seen).toEqual([told("status", "work"), told("artifact", "work"), told("reply", "hello", "undefined")]);
  });

  test("changes a direct answer before it is sent and stored", async () => {
    const signing: Extension = {
      uri,
      onAppend: (event) =>
        event.kind === "reply" ? { ...event, message: { ...event.message, metadata: { signed: true } } } : event,
    };
    const { ask } = extended((turn) => turn.reply("Hello"), [signing]);
    const message = { messageId: "once" };
    const [first, again] = [await ask("hi", { ...active, message }), await ask("hi", { ...active, message })];
    expect([first.message?.metadata, again.message?.metadata]).toEqual([{ signed: true }, { signed: true }]);
  });

  test.each<[string, () => never, string]>([
    [
      "throws",
      () => {
        throw new Error("the key is gone");
      },
      "the key is gone",
    ],
    ["returns nothing", () => undefined as never, "It returned undefined in place of an event with kind"],
    ["returns a promise", () => Promise.resolve({}) as never, "It returned a promise in place of an event with kind"],
    ["returns a promise that rejects", () => Promise.reject(new Error("late")) as never, "It returned a promise"],
    ["returns null", () => null as never, "It returned null in place of an event with kind"],
    ["returns something other than an event", () => ({ kind: "artifact", artifact: { parts: 1 } }) as never, ""],
  ])("that %s fails the task with a safe sentence; earlier events stay", async (_, broken, problem) => {
    const hook: Extension = {
      uri,
      onAppend: (event) => (event.kind === "artifact" && event.append === true ? broken() : event),
    };
    const { send, get, log } = extended(
      async function* (turn) {
        yield turn.artifact({ artifactId: "a", parts: [{ text: "one" }], open: true });
        await turn.flush();
        yield turn.append("a", [{ text: "two" }]);
      },
      [hook],
    );
    const { id } = await send("go", active);
    const task = await get(id);
    expect(task.status.state).toBe("TASK_STATE_FAILED");
    expect(JSON.stringify(task)).not.toContain("key is gone");
    expect(texts(task.artifacts?.[0]?.parts)).toEqual(["one"]);
    const failures = log.filter(({ message }) => message === "A task failed");
    expect(failures).toHaveLength(1);
    const cause = failures[0]?.["cause"];
    expect(String(cause instanceof Error ? cause.cause : cause)).toContain(problem);
  });
});

describe("onDeliver", () => {
  /** Creates an extension that records its calls with their argument. */
  function counting(): { readonly extension: Extension; readonly seen: string[] } {
    const seen: string[] = [];
    const onDeliver = (event: StreamResponse): StreamResponse => {
      seen.push(Object.keys(event).join());
      return event.artifactUpdate === undefined
        ? event
        : { artifactUpdate: { ...event.artifactUpdate, metadata: { delivered: true } } };
    };
    return { seen, extension: { uri, onDeliver } };
  }

  test("runs once an event, for any number of readers, and stored events stay unchanged", async () => {
    const { extension, seen } = counting();
    const { send, subscribe } = extended(echo, [extension]);
    const { id } = await send("hi");
    const read = async (call: object): Promise<readonly StreamItem[]> =>
      (await subscribe(id, { after: 1, ...call })).all();
    const [first, second, plain] = [await read(active), await read(active), await read({})];
    expect(first.map(({ payload, seq }) => [seq, payload.json])).toEqual(
      second.map(({ payload, seq }) => [seq, payload.json]),
    );
    expect(seen.filter((kind) => kind === "artifactUpdate")).toHaveLength(1);
    const metadata = (items: readonly StreamItem[]) =>
      items.flatMap(({ payload }) => payload.value.artifactUpdate ?? []).map((update) => update.metadata);
    expect([metadata(first), metadata(plain)]).toEqual([[{ delivered: true }], [undefined]]);
  });

  test("sees tasks of answers and lists, and direct answers", async () => {
    const { extension, seen } = counting();
    const { ask, send, get, service } = extended(
      async function* (turn) {
        if (turn.text === "hello") return turn.reply("Hello");
        yield* echo(turn);
        return undefined;
      },
      [extension],
    );
    const { id } = await send("hi", active);
    await get(id, active);
    await ask("hello", active);
    const context = { principal: { subject: "anonymous" }, version: "1.0", extensions: [uri] };
    const page = await service.call("ListTasks", {}, context);
    expect(page.payload.value.tasks.map((task) => task.id)).toEqual([id]);
    expect(seen).toEqual(["task", "task", "message", "task"]);
  });

  test.each<[string, () => never]>([
    [
      "throws",
      () => {
        throw new Error("no translation for 10.0.0.7");
      },
    ],
    ["returns nothing", () => undefined as never],
    ["returns null", () => null as never],
    ["returns another kind of event", () => ({ message: { messageId: "m", role: "ROLE_AGENT", parts: [] } }) as never],
    ["returns an event without content", () => ({ task: null }) as never],
    ["returns a promise", () => Promise.resolve({ task: {} }) as never],
    ["returns a promise that rejects", () => Promise.reject(new Error("late")) as never],
  ])("that %s fails only that answer; the task and other readers are unaffected", async (_, onDeliver) => {
    const { send, get, subscribe } = extended(echo, [{ uri, onDeliver }]);
    const { id } = await send("hi");
    const failure = { code: "InternalError", message: "Internal error" };
    await expect(get(id, active)).rejects.toMatchObject(failure);
    await expect((await subscribe(id, { ...active, after: 1 })).all()).rejects.toMatchObject(failure);
    expect((await get(id)).status.state).toBe("TASK_STATE_COMPLETED");
  });
});

test.each<[string, readonly Extension[]]>([
  ["without a URI", [{} as Extension]],
  ["with an empty URI", [{ uri: "" }]],
  ["with the URI of another", [{ uri }, { uri }]],
])("an extension %s is rejected at startup", (_, extensions) => {
  const agent = defineAgent({ name: "Echo", description: "Echo", version: "1", skills: [], onMessage: echo });
  const make = () => createHandler(agent, { publicUrl: "https://a.example", store: memoryStore(), extensions });
  expect(make).toThrow(
    expect.objectContaining({
      code: "InvalidParams",
      fields: [expect.objectContaining({ field: expect.stringMatching(/^extensions(\[0\]\.uri)?$/) as string })],
    }),
  );
});
