import { AsyncLocalStorage } from "node:async_hooks";
import { describe, expect, it } from "vitest";
import type { Logger } from "@parley/a2a/internal/base/index";
import { A2AError, data, file, text, type JsonValue } from "@parley/a2a/internal/model/index";
import type { AgentEvent } from "@parley/a2a/internal/protocol/index";
import { callContext } from "@parley/testing";
import { memoryStore } from "../../src/store/index.ts";
import { eventually, gate, gist, harness, messageOf, short, type OnMessage } from "./support.ts";

/** Returns a value with this many nested arrays. */
function nested(depth: number): JsonValue {
  let value: JsonValue = 1;
  for (let at = 0; at < depth; at += 1) value = [value];
  return value;
}

describe("the life of a task (A2A 1.0 §3.1.1, §4.1.3)", () => {
  it("completes when the agent returns", async () => {
    const { send } = harness(async function* (turn) {
      yield turn.working("Shaking the ball");
      yield turn.artifact({ name: "fortune", parts: [{ text: "It is certain." }] });
    });
    const task = await send("Will it work?");
    expect(task.status.state).toBe("TASK_STATE_COMPLETED");
    expect(task.artifacts).toEqual([{ artifactId: "1-1", name: "fortune", parts: [{ text: "It is certain." }] }]);
    expect(task.history?.map(({ parts }) => parts[0]?.text)).toEqual(["Will it work?"]);
  });

  it("answers with a Message, and creates no task, when the agent replies first (§3.1.1)", async () => {
    const { ask, service } = harness((turn) => turn.reply("Hello"));
    const { message, task } = await ask("Hi");
    expect(task).toBeUndefined();
    expect(message).toMatchObject({ role: "ROLE_AGENT", parts: [{ text: "Hello" }] });
    expect(message?.contextId).toEqual(expect.any(String));
    expect(message?.taskId).toBeUndefined();
    const {
      payload: { value },
    } = await service.call("ListTasks", {}, callContext());
    expect(value.totalSize).toBe(0);
  });

  it("completes the task with a reply that comes after the task was created", async () => {
    const { send } = harness(async function* (turn) {
      yield turn.working();
      return turn.reply("Done after all");
    });
    const task = await send("Go");
    expect(task.status).toMatchObject({
      state: "TASK_STATE_COMPLETED",
      message: { parts: [{ text: "Done after all" }] },
    });
  });

  it("stores the task at once for returnImmediately, although the agent has not begun (§3.2.2)", async () => {
    const { opened, open } = gate();
    const { send, get } = harness(
      async function* (turn) {
        await opened;
        yield turn.artifact({ parts: [{ text: "late" }] });
      },
      { behaviour: { mayReplyDirectly: false } },
    );
    const task = await send("Go", { configuration: { returnImmediately: true } });
    expect(task.status.state).toBe("TASK_STATE_SUBMITTED");
    open();
    await expect.poll(async () => (await get(task.id)).status.state).toBe("TASK_STATE_COMPLETED");
  });

  it("bounds the wait for a direct reply, then creates the task and answers with it", async () => {
    const { opened, open } = gate();
    const { ask, get } = harness(
      async (turn) => {
        await opened;
        return turn.reply("A late reply");
      },
      { directReplyWithin: 1 },
    );
    const { task } = await ask("Go", { configuration: { returnImmediately: true } });
    expect(task?.status.state).toBe("TASK_STATE_SUBMITTED");
    open();
    await expect.poll(async () => (await get(task?.id ?? "")).status.state).toBe("TASK_STATE_COMPLETED");
    expect((await get(task?.id ?? "")).status.message?.parts).toEqual([{ text: "A late reply" }]);
  });

  it("answers with a direct Message that arrives in time, even for returnImmediately", async () => {
    const { ask } = harness((turn) => turn.reply("quick"));
    const { message } = await ask("Go", { configuration: { returnImmediately: true } });
    expect(message?.parts).toEqual([{ text: "quick" }]);
  });

  it("keeps its context if a message names only the task, and rejects another context (§3.4.3)", async () => {
    const { send } = harness(async function* (turn) {
      if (turn.number === 1) yield turn.inputRequired("Which one?");
      else yield turn.artifact({ parts: [{ text: turn.text }] });
    });
    const first = await send("Chart it");
    expect(first.status.state).toBe("TASK_STATE_INPUT_REQUIRED");
    await expect(send("x", { message: { taskId: first.id, contextId: "another" } })).rejects.toMatchObject({
      code: "InvalidParams",
      fields: [{ field: "message.contextId" }],
    });
    const second = await send("The left one", { message: { taskId: first.id } });
    expect(second).toMatchObject({
      id: first.id,
      contextId: first.contextId,
      status: { state: "TASK_STATE_COMPLETED" },
    });
    expect(second.history?.map(({ parts }) => parts[0]?.text)).toEqual(["Chart it", "Which one?", "The left one"]);
  });

  it("keeps a context id that the client chose (§3.4.1)", async () => {
    const { send } = harness(async function* (turn) {
      yield turn.working();
    });
    expect((await send("x", { message: { contextId: "mine" } })).contextId).toBe("mine");
  });

  it("rejects messages to a terminal task, and to an unknown one (§3.1.1)", async () => {
    const { send } = harness(async function* (turn) {
      yield turn.working();
    });
    const { id } = await send("x");
    await expect(send("more", { message: { taskId: id } })).rejects.toMatchObject({ code: "UnsupportedOperation" });
    await expect(send("more", { message: { taskId: "nobody" } })).rejects.toMatchObject({ code: "TaskNotFound" });
  });

  it("keeps messages that stop the task in its history, and progress only if the agent asks for it (§3.7)", async () => {
    const { send } = harness(async function* (turn) {
      yield turn.working("a step");
      yield turn.working("a step worth keeping", { keep: true });
      yield turn.failed("It cannot be done");
    });
    const task = await send("Go");
    expect(task.history?.map(({ parts }) => parts[0]?.text)).toEqual([
      "Go",
      "a step worth keeping",
      "It cannot be done",
    ]);
    expect(task.status).toMatchObject({
      state: "TASK_STATE_FAILED",
      message: { parts: [{ text: "It cannot be done" }] },
    });
  });

  it("stores its records in the order of their times, even when the clock advances between events", async () => {
    let now = 1_000_000;
    const clock = { now: () => (now += 1), elapsed: () => now, after: () => () => {} };
    const { send, store } = harness((turn) => Promise.resolve(turn.completed("at once")), { clock });
    const { id, contextId = "" } = await send("Go");
    const page = await store.read({ agent: "agent" }, id, { after: 0, limit: 10 });
    const times = page?.records.map(({ time }) => time) ?? [];
    expect(times).toEqual(times.toSorted((a, b) => a - b));
    const owner = page?.head.task.owner ?? "";
    const { entries } = await store.conversation({ agent: "agent", owner, contextId }, { limit: 10 });
    expect(entries.map((entry) => "message" in entry && entry.message.parts[0]?.text)).toEqual(["Go", "at once"]);
  });

  it("gives the agent the whole task in a later turn, and the call that brought the message", async () => {
    const seen: unknown[] = [];
    const { send } = harness(async function* (turn) {
      seen.push({ number: turn.number, artifacts: turn.task?.artifacts?.length, metadata: turn.metadata });
      if (turn.number > 1) return;
      yield turn.artifact({ parts: [{ text: "one" }] });
      yield turn.inputRequired("More?");
    });
    const { id } = await send("Go");
    const failed = await send("Yes", { message: { taskId: id } });
    expect(seen).toEqual([
      { number: 1, artifacts: undefined, metadata: undefined },
      { number: 2, artifacts: 1, metadata: undefined },
    ]);
    // A turn that yields no event fails the task, even if earlier turns yielded events.
    expect(failed.status.state).toBe("TASK_STATE_FAILED");
  });
});

describe("a faulty agent", () => {
  async function failure(onMessage: Parameters<typeof harness>[0]) {
    const { send, log, get } = harness(onMessage);
    const task = await send("Go");
    const again = await get(task.id);
    expect(again).toEqual(task);
    const cause = log.find(({ message }) => message === "A task failed")?.["cause"];
    return { state: short(task.status.state), said: task.status.message?.parts[0]?.text, cause, task };
  }

  it("that throws ends FAILED with a safe sentence; the log has the cause", async () => {
    const { state, said, cause, task } = await failure(async function* (turn) {
      yield turn.working("step", { keep: true });
      yield turn.artifact({ parts: [{ text: "half" }] });
      throw new Error("postgres://user:secret@db/prod refused");
    });
    expect(state).toBe("failed");
    expect(said).toBe("The agent failed and could not complete this task.");
    expect(JSON.stringify(task)).not.toContain("secret");
    expect(cause).toMatchObject({ message: "postgres://user:secret@db/prod refused" });
    // The failed task keeps its history and artifacts.
    expect(task.history).toHaveLength(3);
    expect(task.artifacts).toHaveLength(1);
  });

  it("is reported in the log once the failure is stored, in the context of its call", async () => {
    const calls = new AsyncLocalStorage<string>();
    const store = memoryStore();
    const seen: Promise<unknown>[] = [];
    const ignore = (): void => {};
    const error: Logger["error"] = (message, { taskId, cause } = {}) => {
      const context = calls.getStore();
      const found = store.head({ agent: "agent" }, String(taskId));
      seen.push(found.then((head) => [message, String(cause), head?.state, context]));
    };
    const logger = { debug: ignore, info: ignore, warn: ignore, error };
    const { send } = harness(
      async function* (turn) {
        yield turn.working();
        throw new Error(turn.text);
      },
      { store, logger },
    );
    const texts = ["one", "two", "three"];
    await Promise.all(texts.map((text) => calls.run(text, () => send(text))));
    const expected = texts.map((text) => ["A task failed", `Error: ${text}`, "TASK_STATE_FAILED", text]);
    expect(new Set((await Promise.all(seen)).map(String))).toEqual(new Set(expected.map(String)));
  });

  it("is not reported as a failed task if the task was canceled first", async () => {
    const { opened, open } = gate();
    const { send, store, log } = harness(async function* (turn) {
      yield turn.working();
      await opened;
      throw new Error("too late");
    });
    const { id } = await send("Go", { configuration: { returnImmediately: true } });
    const head = await store.head({ agent: "agent" }, id);
    if (head === undefined) throw new Error("the task is not stored");
    // Another process cancels the task, and this process has not noticed.
    const status = { state: "TASK_STATE_CANCELED" } as const;
    const json = JSON.stringify({ taskId: id, contextId: head.contextId, status });
    const origin = { kind: "statusUpdate", time: 1, actor: "system", turn: 1, attempt: 1 } as const;
    const effects = [
      { effect: "run", run: null },
      { effect: "lease", op: "revoke" },
    ] as const;
    await store.append([{ task: head.task, records: [{ ...origin, json, state: status.state }], effects }]);
    open();
    await eventually(() => log.some(({ message }) => message === "Run failed after its task was lost"));
    expect(log.filter(({ level }) => level === "error")).toEqual([]);
  });

  it("that throws before its first event, or is not a generator", async () => {
    expect(
      (
        await failure(() => {
          throw new Error("at once");
        })
      ).state,
    ).toBe("failed");
    expect((await failure(() => Promise.reject(new Error("later")))).state).toBe("failed");
  });

  it("that yields nothing fails as an invalid response, and no caller keeps waiting", async () => {
    const { state, said, cause } = await failure(async function* () {});
    expect([state, said]).toEqual(["failed", "The agent gave no answer."]);
    expect(cause).toBeInstanceOf(A2AError);
    expect(cause).toMatchObject({ code: "InvalidAgentResponse" });
  });

  const nonsense: readonly [string, unknown][] = [
    ["a string", "hello"],
    ["null", null],
    ["an unknown kind", { kind: "dance" }],
    ["an unknown state", { kind: "status", state: "TASK_STATE_BORED" }],
    ["an artifact without parts", { kind: "artifact", artifact: { artifactId: "a", parts: [] } }],
    ["a part with two contents", { kind: "artifact", artifact: { artifactId: "a", parts: [{ text: "a", data: 1 }] } }],
    ["a message of numbers", { kind: "status", state: "TASK_STATE_WORKING", message: { parts: [1] } }],
    [
      "an append to an unknown artifact",
      { kind: "artifact", append: true, artifact: { artifactId: "x", parts: [{ text: "y" }] } },
    ],
    ["a return to an earlier state", { kind: "status", state: "TASK_STATE_SUBMITTED" }],
  ];
  it.each(nonsense)("that yields %s", async (_name, event) => {
    const { state, said, cause } = await failure(async function* (turn) {
      yield turn.working();
      yield event as AgentEvent;
    });
    expect([state, said]).toEqual(["failed", "The agent gave an invalid answer."]);
    expect(cause).toMatchObject({ code: "InvalidAgentResponse" });
  });

  it("that appends to an artifact it had closed", async () => {
    const { state } = await failure(async function* (turn) {
      const whole = turn.artifact({ parts: [{ text: "all of it" }] });
      yield whole;
      yield turn.append(whole.artifact.artifactId, [{ text: "and more" }]);
    });
    expect(state).toBe("failed");
  });

  const mistakes: readonly [string, string, OnMessage][] = [
    [
      "an append to a closed artifact",
      'turn.append("x"), event 2 of turn 1: artifact "x" is closed: open it with turn.artifact({ artifactId: "x", parts, open: true })',
      async function* (turn) {
        yield turn.artifact({ artifactId: "x", parts: [{ text: "1" }] });
        yield turn.append("x", [{ text: "2" }]);
      },
    ],
    [
      "an append to an unknown artifact",
      'turn.append("y"), event 1 of turn 1: this task has no artifact "y": begin it with turn.artifact({ artifactId: "y", parts, open: true })',
      async function* (turn) {
        yield turn.append("y", [{ text: "2" }]);
      },
    ],
    [
      "an invalid part",
      "turn.working(), event 2 of turn 1: message.parts[0]",
      async function* (turn) {
        yield turn.working();
        yield turn.working([1 as never]);
      },
    ],
    [
      "an event after the end",
      "turn.working(), event 2 of turn 1: the event before it ended the task",
      async function* (turn) {
        yield [turn.completed(), turn.working()];
      },
    ],
    [
      "no event",
      'The yielded value, {"kind":"dance"}, event 1 of turn 1: it is not an event: yield the result of a builder of the turn',
      async function* () {
        yield { kind: "dance" } as never;
      },
    ],
    [
      "a stream without yield*",
      "it is a stream of events: write yield* turn.stream(…)",
      async function* (turn) {
        async function* tokens(): AsyncGenerator<string> {
          yield "a";
        }
        yield turn.stream(tokens()) as never;
      },
    ],
    [
      "a bigint in an artifact",
      'turn.artifact({ artifactId: "x" }), event 1 of turn 1: it is not JSON',
      async function* (turn) {
        yield turn.artifact({ artifactId: "x", parts: [{ data: { n: 1n } as never }] });
      },
    ],
    [
      "data that nests too deep for its readers",
      'turn.artifact({ artifactId: "x" }), event 1 of turn 1: it is not JSON',
      async function* (turn) {
        yield turn.artifact({ artifactId: "x", parts: [{ data: nested(500) }] });
      },
    ],
    [
      "data that nests without end",
      "turn.working(), event 1 of turn 1: it is not JSON",
      async function* (turn) {
        yield turn.working([{ data: nested(100_000) }]);
      },
    ],
    [
      "a direct reply that nests too deep",
      "turn.reply(): it is not JSON",
      (turn) => turn.reply([{ data: nested(500) }]),
    ],
    [
      "a date in data that was made by hand",
      'turn.artifact({ artifactId: "x" }), event 1 of turn 1: it is not JSON: artifact.parts[1].data.row.at is a Date; use plain objects',
      async function* (turn) {
        yield turn.artifact({
          artifactId: "x",
          parts: [{ text: "a" }, { data: { row: { at: new Date() } } as never }],
        });
      },
    ],
    [
      "a map in metadata",
      "turn.working(), event 1 of turn 1: it is not JSON: metadata.seen is a Map; use plain objects",
      async function* (turn) {
        yield turn.working("x", { metadata: { seen: new Map() } as never });
      },
    ],
    [
      "bytes in the metadata of a direct reply",
      "turn.reply(): it is not JSON: message.parts[0].metadata.hash is a Uint8Array; use plain objects",
      (turn) => turn.reply([{ text: "x", metadata: { hash: new Uint8Array(1) } as never }]),
    ],
    [
      "a date as state",
      "turn.setState(): it is not JSON: value.at is a Date; use plain objects",
      async function* (turn) {
        turn.setState({ at: new Date() } as never);
        yield turn.working();
      },
    ],
    [
      "not a number as checkpoint",
      "turn.saveCheckpoint(): it is not JSON: value.page is NaN; use plain objects",
      async function* (turn) {
        yield [turn.working(), turn.saveCheckpoint({ page: NaN })];
      },
    ],
    [
      "a circle in a message",
      "turn.working(), event 1 of turn 1: it is not JSON",
      async function* (turn) {
        const circle: Record<string, unknown> = {};
        circle["itself"] = circle;
        yield turn.working([{ data: circle as never }]);
      },
    ],
    [
      "a bigint as checkpoint",
      "turn.saveCheckpoint(): it is not JSON",
      async function* (turn) {
        yield [turn.working(), turn.saveCheckpoint(1n as never)];
      },
    ],
    [
      "a bigint as state",
      "context.setState(): it is not JSON",
      async function* (turn) {
        turn.context.setState({ n: 1n } as never);
        yield turn.working();
      },
    ],
    [
      "a checkpoint that nests too deep",
      "turn.saveCheckpoint(): it is not JSON",
      async function* (turn) {
        yield [turn.working(), turn.saveCheckpoint(nested(501))];
      },
    ],
    ["nothing at all", "return turn.reply(…), or yield an event", async function* () {}],
  ];
  it.each(mistakes)("that yields %s: the log names the event and the correct form", async (_name, text, agent) => {
    const { state, said, cause } = await failure(agent);
    expect(state).toBe("failed");
    expect(said).toMatch(/^The agent gave (no|an invalid) answer\.$/u);
    expect((cause as Error).message).toContain(text);
  });

  it.each<readonly [name: string, text: string, agent: OnMessage]>([
    [
      "data",
      "data.rows[0].at is a Date, which is not JSON; use plain objects, lists, strings, finite numbers, booleans or null",
      async function* (turn) {
        const rows: readonly Record<string, unknown>[] = [{ at: new Date() }];
        yield turn.artifact({ parts: [data({ rows })] });
      },
    ],
    [
      "metadata of a text",
      "metadata.at is a Date, which is not JSON; use plain objects",
      (turn) => {
        const metadata: Record<string, unknown> = { at: new Date() };
        return turn.reply(text("x", { metadata }));
      },
    ],
    [
      "metadata of a file",
      "metadata.at is a Date, which is not JSON; use plain objects",
      (turn) => {
        const metadata: Record<string, unknown> = { at: new Date() };
        return turn.reply(file(new Uint8Array(1), { metadata }));
      },
    ],
  ])("that makes %s that is not JSON: the call of the builder throws", async (_name, said, agent) => {
    const { state, cause } = await failure(agent);
    expect(state).toBe("failed");
    expect(cause).toBeInstanceOf(TypeError);
    expect((cause as Error).message).toContain(said);
  });

  it("does not include data that nests 400 levels deep", async () => {
    const { send } = harness(async function* (turn) {
      yield turn.completed([{ data: nested(400) }]);
    });
    const { status } = await send("Go");
    expect(status).toMatchObject({ state: "TASK_STATE_COMPLETED", message: { parts: [{ data: nested(400) }] } });
  });

  it("opens an artifact, appends to it in later turns, and closes it", async () => {
    const { send } = harness(async function* (turn) {
      if (turn.number === 1) {
        const table = turn.artifact({ name: "table", parts: [{ text: "a" }], open: true });
        yield table;
        yield turn.append(table.artifact.artifactId, [{ text: "b" }]);
        yield turn.inputRequired("More?");
      } else yield turn.append("1-1", [{ text: "c" }], { last: true });
    });
    const { id } = await send("Go");
    const { artifacts } = await send("Yes", { message: { taskId: id } });
    expect(artifacts).toEqual([{ artifactId: "1-1", name: "table", parts: [{ text: "abc" }] }]);
  });

  it("that yields after the end of the task changes nothing: terminal states are final (§4.1.3)", async () => {
    let cleanedUp = false;
    const { stream, get } = harness(async function* (turn) {
      try {
        yield turn.completed("Done");
        yield turn.artifact({ parts: [{ text: "too late" }] });
        yield turn.working("still here");
      } finally {
        cleanedUp = true;
      }
    });
    const items = await (await stream("Go")).all();
    expect(items.map(({ payload }) => gist(payload.value))).toEqual(["task submitted", "completed"]);
    const task = await get(items[0]?.payload.value.task?.id ?? "");
    expect(task.artifacts).toBeUndefined();
    expect(cleanedUp).toBe(true);
  });

  it("that yields an array with an event after the end stores none of it", async () => {
    const { state, task } = await failure(async function* (turn) {
      yield turn.working();
      yield [turn.completed("Done"), turn.artifact({ parts: [{ text: "too late" }] })];
    });
    expect(state).toBe("failed");
    expect(task.artifacts).toBeUndefined();
  });

  it("that changes an event after yielding it changes nothing", async () => {
    const { send } = harness(async function* (turn) {
      const parts = [{ text: "as yielded" }];
      yield turn.artifact({ artifactId: "a", parts });
      (parts[0] as { text: string }).text = "as changed";
      yield turn.working();
    });
    expect((await send("Go")).artifacts?.[0]?.parts).toEqual([{ text: "as yielded" }]);
  });

  it("cannot have its values changed by a caller in the same process", async () => {
    const { stream, get } = harness(async function* (turn) {
      yield turn.artifact({ parts: [{ text: "mine" }] });
    });
    const items = await (await stream("Go")).all();
    const [first] = items;
    expect(() => Object.assign(first?.payload.value.task?.status ?? {}, { state: "TASK_STATE_FAILED" })).toThrow(
      TypeError,
    );
    const task = await get(first?.payload.value.task?.id ?? "");
    expect(() => Object.assign(task.status, { state: "TASK_STATE_FAILED" })).toThrow(TypeError);
  });
});

describe("a call is rejected before any work (§3.3.4)", () => {
  const reply = harness.bind(undefined, (turn) => turn.reply("ok"));

  it("for a stream, if the card does not declare streaming", async () => {
    const { stream, subscribe } = reply({ card: { capabilities: { streaming: false } } });
    await expect(stream("x")).rejects.toMatchObject({ code: "UnsupportedOperation" });
    await expect(subscribe("x")).rejects.toMatchObject({ code: "UnsupportedOperation" });
  });

  it("for webhooks, also within a send", async () => {
    const { ask, service } = reply();
    const refused = { code: "PushNotificationNotSupported" };
    const configuration = { taskPushNotificationConfig: { url: "https://example.com/hook" } };
    await expect(ask("x", { configuration })).rejects.toMatchObject(refused);
    const context = callContext();
    const key = { taskId: "t", id: "c" };
    await expect(
      service.call("CreateTaskPushNotificationConfig", { url: "https://example.com" }, context),
    ).rejects.toMatchObject(refused);
    await expect(service.call("GetTaskPushNotificationConfig", key, context)).rejects.toMatchObject(refused);
    await expect(service.call("ListTaskPushNotificationConfigs", key, context)).rejects.toMatchObject(refused);
    await expect(service.call("DeleteTaskPushNotificationConfig", key, context)).rejects.toMatchObject(refused);
  });

  it("for the extended card: unsupported if not declared, not configured if missing", async () => {
    const undeclared = reply();
    await expect(undeclared.service.call("GetExtendedAgentCard", {}, callContext())).rejects.toMatchObject({
      code: "UnsupportedOperation",
    });
    const declared = reply({ card: { capabilities: { streaming: true, extendedAgentCard: true } } });
    await expect(declared.service.call("GetExtendedAgentCard", {}, callContext())).rejects.toMatchObject({
      code: "ExtendedAgentCardNotConfigured",
    });
  });

  it("if a required extension is not requested (§4.6)", async () => {
    const extensions = [{ uri: "urn:example:needed", required: true }, { uri: "urn:example:other" }];
    const { ask, service } = reply({ card: { capabilities: { streaming: true, extensions } } });
    await expect(ask("x")).rejects.toMatchObject({ code: "ExtensionSupportRequired" });
    const context = callContext({ extensions: ["urn:example:needed", "urn:example:unknown"] });
    const { extensions: activated } = await service.call("SendMessage", { message: messageOf("x") }, context);
    expect(activated).toEqual(["urn:example:needed"]);
  });

  it("for media types that neither the card nor a skill of the agent has among its input modes", async () => {
    const skill = { id: "s", name: "s", description: "s", tags: [], inputModes: ["image/*"] };
    const { ask } = reply({ card: { defaultInputModes: ["text/plain"], skills: [skill] } });
    const part = (init: object) => ({ message: { parts: [init as { text: string }] } });
    await expect(ask("", part({ raw: "AA==", mediaType: "video/mp4" }))).rejects.toMatchObject({
      code: "ContentTypeNotSupported",
      fields: [{ field: "message.parts[0].mediaType" }],
    });
    await expect(ask("", part({ data: {} }))).rejects.toMatchObject({ code: "ContentTypeNotSupported" });
    await ask("", part({ raw: "AA==", mediaType: "Image/PNG; q=1" }));
    await ask("", part({ url: "https://example.com/unknown" }));
  });

  it("for a message in the role of the agent", async () => {
    const { ask } = reply();
    await expect(ask("x", { message: { role: "ROLE_AGENT" } })).rejects.toMatchObject({
      code: "InvalidParams",
      fields: [{ field: "message.role" }],
    });
  });
});
