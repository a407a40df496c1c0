import * as z from "zod";
import { describe, expect, test } from "vitest";
import { A2AError } from "../../src/model/index.ts";
import type { AnyExtension, Extension, ExtensionTurn, TurnEnd } from "../../src/protocol/index.ts";
import { memoryStore } from "@parley/server/internal/store/index";
import { eventually, gate, harness, type Harness, type OnMessage } from "../../../server/test/engine/support.ts";

const uri = "urn:example:turns";
const active = { extensions: [uri] };

function extended(onMessage: OnMessage, ...extensions: readonly AnyExtension[]): Harness {
  return harness(onMessage, { extensions });
}

/** Returns the agent's access to the extension, untyped. */
function ext(turn: Parameters<OnMessage>[0], of = uri): unknown {
  return (turn as { ext(extension: AnyExtension): unknown }).ext({ uri: of });
}

describe("onTurnStart and onTurnEnd", () => {
  test("frame the turn: turn.ext() returns the result of the first; onAppend and onTurnEnd see it", async () => {
    const seen: unknown[] = [];
    const extension: Extension = {
      uri,
      onTurnStart(turn, reads) {
        seen.push(["start", turn.number, turn.message.parts[0]?.text, turn.started, reads.message]);
        return { steps: [] as string[] };
      },
      onAppend(event, { started }) {
        (started as { steps: string[] }).steps.push(event.kind);
        return event;
      },
      onTurnEnd(turn, end) {
        seen.push(["end", turn.number, turn.started, end]);
      },
    };
    const made = extended(async function* (turn) {
      (ext(turn) as { steps: string[] }).steps.push(turn.text);
      yield turn.artifact({ parts: [{ text: "a" }] });
      yield turn.inputRequired("More?");
    }, extension);
    const { id } = await made.send("one", active);
    await made.send("two", { ...active, message: { taskId: id } });
    // Without activation, no part of the extension runs.
    await expect(made.send("three", { message: { taskId: id } })).resolves.toMatchObject({
      status: { state: "TASK_STATE_FAILED" },
    });
    const steps = (text: string) => ({ steps: [text, "artifact", "status"] });
    expect(seen).toEqual([
      ["start", 1, "one", undefined, {}],
      ["end", 1, steps("one"), {}],
      ["start", 2, "two", undefined, {}],
      ["end", 2, steps("two"), {}],
    ]);
  });

  test("see the turn: its ids, its caller, its request, its time, and its rows", async () => {
    let seen: ExtensionTurn | undefined;
    const made = extended((turn) => turn.reply("ok"), {
      uri,
      onTurnStart(turn: ExtensionTurn) {
        seen = turn;
      },
    });
    await made.service.call(
      "SendMessage",
      {
        message: { messageId: "m", contextId: "c", role: "ROLE_USER", parts: [{ text: "go" }] },
        metadata: { a: 1 },
      },
      { principal: { subject: "ada" }, version: "1.0", extensions: [uri] },
    );
    expect(seen).toMatchObject({
      contextId: "c",
      attempt: 1,
      metadata: { a: 1 },
      principal: { subject: "ada" },
      extensions: [uri],
      resumable: false,
    });
    expect(seen?.taskId).toMatch(/./);
    expect(typeof seen?.clock.now()).toBe("number");
    expect(seen?.signal).toBeInstanceOf(AbortSignal);
    await expect(seen?.rows.read()).resolves.toEqual([]);
  });

  test("keep the activation of a message that waits for its turn", async () => {
    const started: (string | undefined)[] = [];
    let release = (): void => {};
    const held = new Promise<void>((resolve) => (release = resolve));
    const made = extended(
      async function* (turn) {
        yield turn.working("at it");
        if (turn.text === "one") await held;
        yield turn.inputRequired(`${turn.text} ${turn.extensions.join()}`);
      },
      {
        uri,
        onTurnStart(turn: ExtensionTurn) {
          started.push(turn.message.parts[0]?.text);
        },
      },
    );
    const reading = await made.stream("one");
    const { payload } = await reading.until((event) => event.statusUpdate !== undefined);
    const taskId = payload.value.statusUpdate?.taskId ?? "";
    const second = made.send("two", { ...active, message: { taskId } });
    const third = made.send("three", { message: { taskId } });
    // Waits for the task, its status, and both messages.
    const scope = { agent: "agent", owner: '[null,"anonymous"]' };
    await eventually(async () => ((await made.store.head(scope, taskId))?.seq ?? 0) >= 4);
    release();
    await Promise.all([second, third]);
    expect(started).toEqual(["two"]);
  });

  test("keep the activation of a turn that another process resumes before any call", async () => {
    const attempts: number[] = [];
    const store = memoryStore();
    const extension: AnyExtension = {
      uri,
      onTurnStart(turn: ExtensionTurn) {
        attempts.push(turn.attempt);
        return `attempt ${turn.attempt}`;
      },
    };
    const running = gate();
    const options = { store, extensions: [extension], behaviour: { resumable: true } };
    const lost = harness(async function* (turn) {
      yield turn.working("at it");
      running.open();
      await new Promise((resolve) => turn.signal.addEventListener("abort", resolve));
    }, options);
    const { id } = await lost.send("go", { ...active, configuration: { returnImmediately: true } });
    await running.opened;
    await lost.engine.close();
    const next = harness(async function* (turn) {
      yield turn.working("at it");
      yield turn.completed(String(ext(turn)));
    }, options);
    await eventually(async () => (await next.get(id)).status.state === "TASK_STATE_COMPLETED");
    expect((await next.get(id)).status.message?.parts[0]?.text).toBe("attempt 2");
    expect(attempts).toEqual([1, 2]);
  });

  test("onTurnEnd gets the agent's error; an error that it throws is logged", async () => {
    const ends: TurnEnd[] = [];
    const made = extended(
      async function* (turn) {
        yield turn.working("at it");
        throw new Error("the agent is broken");
      },
      {
        uri,
        onTurnEnd(_turn: ExtensionTurn, end: TurnEnd) {
          ends.push(end);
          return Promise.reject(new Error("and so is the hook"));
        },
      },
    );
    const task = await made.send("go", active);
    expect(task.status.state).toBe("TASK_STATE_FAILED");
    await eventually(() => made.log.some(({ hook }) => hook === "onTurnEnd"));
    expect(ends).toEqual([{ error: expect.objectContaining({ message: "the agent is broken" }) as Error }]);
    expect(made.log.find(({ hook }) => hook === "onTurnEnd")).toMatchObject({ level: "error", extension: uri });
  });

  test("onTurnStart that throws fails the task; of a data extension it is logged, and the turn continues without", async () => {
    let later = 0;
    const onAppend: Extension["onAppend"] = (event) => {
      later += 1;
      return event;
    };
    const onTurnEnd = (): void => {
      later += 1;
    };
    const broken: AnyExtension = {
      uri,
      onAppend,
      onTurnEnd,
      onTurnStart() {
        throw new Error("no start at 10.0.0.7");
      },
    };
    const agent: OnMessage = async function* (turn) {
      yield turn.artifact({ parts: [{ text: String(ext(turn)) }] });
    };
    const failing = extended(agent, broken);
    const failed = await failing.send("go", active);
    expect(failed.status.state).toBe("TASK_STATE_FAILED");
    expect(JSON.stringify(failed)).not.toContain("10.0.0.7");
    expect(
      failing.log.some(
        ({ level, cause }) => level === "error" && String((cause as Error)?.cause ?? cause).includes(uri),
      ),
    ).toBe(true);
    const harmless = extended(agent, { ...broken, kind: "data" });
    const done = await harmless.send("go", active);
    expect([done.status.state, done.artifacts?.[0]?.parts[0]?.text]).toEqual(["TASK_STATE_COMPLETED", "undefined"]);
    expect(harmless.log.map(({ level, hook }) => [level, hook])).toEqual([["warn", "onTurnStart"]]);
    expect(later).toBe(0);
  });
});

describe("a failing data extension never fails a task or a call", () => {
  const agent: OnMessage = async function* (turn) {
    yield turn.artifact({ artifactId: "a", parts: [{ text: turn.text }] });
  };
  const explode = (): never => {
    throw new A2AError("PermissionDenied", "no");
  };

  test.each<[string, Partial<Extension>]>([
    ["onAccept throws", { onAccept: explode }],
    ["onAccept rejects", { onAccept: () => Promise.reject(new Error("no")) }],
    ["onAccept sets rows, and throws", { onAccept: (_, { rows }) => (rows.set("k", "1"), explode()) }],
    ["onAccept sets a row that no store takes", { onAccept: (input, { rows }) => (rows.set("", "1"), input) }],
    ["onAccept returns no message", { onAccept: () => ({}) as never }],
    ["onAccept changes the id", { onAccept: ({ message }) => ({ message: { ...message, messageId: "x" } }) }],
    ["onAccept adds a field", { onAccept: ({ message }) => ({ message: { ...message, mood: "calm" } as never }) }],
    ["onAppend throws", { onAppend: explode }],
    ["onAppend sets rows, and throws", { onAppend: (_, { rows }) => (rows?.set("k", "1"), explode()) }],
    ["onAppend returns nothing", { onAppend: () => undefined as never }],
    ["onAppend adds a field", { onAppend: (event) => ({ ...event, mood: "calm" }) as never }],
    ["onDeliver throws", { onDeliver: explode }],
    ["onDeliver returns a promise", { onDeliver: () => Promise.reject(new Error("no")) as never }],
    ["onDeliver adds a field", { onDeliver: (event) => ({ ...event, mood: "calm" }) }],
  ])("%s", async (_, hooks) => {
    const made = extended(agent, { uri, kind: "data", ...hooks });
    const task = await made.send("hi", { ...active, message: { messageId: "m" } });
    expect(task.status.state).toBe("TASK_STATE_COMPLETED");
    expect(task.artifacts).toEqual([{ artifactId: "a", parts: [{ text: "hi" }] }]);
    expect(task.history?.[0]).toMatchObject({ messageId: "m", parts: [{ text: "hi" }] });
    expect(JSON.stringify(task)).not.toContain("mood");
    expect(await made.store.features({ agent: "agent", owner: '[null,"anonymous"]' }, task.id, uri)).toEqual([]);
    const lines = made.log.filter(({ extension }) => extension === uri);
    expect(lines.length).toBeGreaterThan(0);
    expect(new Set(lines.map(({ level, hook }) => `${level} ${String(hook)}`))).toEqual(
      new Set([`warn ${Object.keys(hooks)[0]}`]),
    );
  });
});

describe("hooks may only add data to metadata and parts (A2A 1.0, topic Extensions)", () => {
  const agent: OnMessage = async function* (turn) {
    if (turn.text === "direct") return turn.reply("hi");
    yield turn.working("at it");
    yield turn.artifact({ artifactId: "a", parts: [{ text: turn.text }] });
    return undefined;
  };
  type Of<Name extends keyof Extension> = NonNullable<Extension[Name]>;
  const part = { text: "x", mood: "calm" } as never;

  test("data in metadata and parts is stored and sent, on every kind of event", async () => {
    const stamp = { [`${uri}/mood`]: { any: ["json", null, ""] } };
    const made = extended(agent, {
      uri,
      onAccept: ({ message }) => ({
        message: {
          ...message,
          metadata: stamp,
          parts: [...message.parts, { data: stamp, mediaType: "a/b", metadata: stamp }],
        },
        metadata: stamp,
      }),
      onAppend: (event) =>
        event.kind === "status"
          ? {
              ...event,
              metadata: stamp,
              ...(event.message && { message: { ...event.message, metadata: stamp, extensions: [uri] } }),
            }
          : event.kind === "reply"
            ? { ...event, message: { ...event.message, metadata: stamp } }
            : event,
      onDeliver: (event) => (event.task === undefined ? event : { task: { ...event.task, metadata: stamp } }),
    });
    const task = await made.send("hi", active);
    expect(task).toMatchObject({
      metadata: stamp,
      history: [{ metadata: stamp, parts: [{}, { data: stamp, metadata: stamp }] }],
    });
    expect((await made.ask("direct", active)).message?.metadata).toEqual(stamp);
    expect(made.log).toEqual([]);
  });

  test.each<[string, Of<"onAccept">, string]>([
    ["a field of the message", ({ message }) => ({ message: { ...message, mood: "calm" } as never }), "message.mood"],
    ["a field of a part", ({ message }) => ({ message: { ...message, parts: [part] } }), "message.parts[0].mood"],
    ["a field of the request", (input) => ({ ...input, mood: "calm" }) as never, "mood"],
    ["a role", ({ message }) => ({ message: { ...message, role: "ROLE_SYSTEM" as never } }), "message.role"],
  ])("onAccept may not add %s: the message is rejected", async (_, onAccept, field) => {
    const made = extended(agent, { uri, onAccept });
    await expect(made.send("hi", active)).rejects.toMatchObject({
      code: "InternalError",
      cause: { message: expect.stringContaining(`onAccept of the extension ${uri} failed`) as string },
    });
    await expect(made.send("hi", active)).rejects.toMatchObject({
      cause: { message: expect.stringContaining(field) as string },
    });
  });

  test.each<[string, Of<"onAppend">, string]>([
    [
      "a field of a status",
      (event) => (event.kind === "status" ? ({ ...event, mood: "calm" } as never) : event),
      "mood is not a member",
    ],
    [
      "a field of its message",
      (event) =>
        event.kind === "status" && event.message
          ? { ...event, message: { ...event.message, mood: "calm" } as never }
          : event,
      "message.mood is not a member",
    ],
    [
      "a state",
      (event) => (event.kind === "status" ? { ...event, state: "TASK_STATE_DRAWING" as never } : event),
      "state is not a state of a task: TASK_STATE_DRAWING",
    ],
    [
      "a role",
      (event) =>
        event.kind === "status" && event.message
          ? { ...event, message: { ...event.message, role: "ROLE_TOOL" } as never }
          : event,
      "message.role must be one of",
    ],
    [
      "a field of an artifact",
      (event) =>
        event.kind === "artifact" ? { ...event, artifact: { ...event.artifact, mood: "calm" } as never } : event,
      "artifact.mood is not a member",
    ],
    [
      "a field of a part",
      (event) => (event.kind === "artifact" ? { ...event, artifact: { ...event.artifact, parts: [part] } } : event),
      "artifact.parts[0].mood is not a member",
    ],
    [
      "a kind of event",
      (event) => (event.kind === "artifact" ? ({ kind: "mood" } as never) : event),
      "kind must be one of status, artifact, reply",
    ],
  ])("onAppend may not add %s: the task fails, and keeps what is stored", async (_, onAppend, said) => {
    const made = extended(agent, { uri, onAppend });
    const task = await made.send("hi", active);
    expect(task.status.state).toBe("TASK_STATE_FAILED");
    const texts = made.log.map(({ cause }) => String((cause as Error | undefined)?.cause ?? cause));
    expect(
      texts.some((text) => text.includes(said)),
      texts.join("\n"),
    ).toBe(true);
  });

  test.each<[string, Of<"onDeliver">]>([
    ["a field of a task", (event) => (event.task ? ({ task: { ...event.task, mood: "calm" } } as never) : event)],
    ["a field beside it", (event) => ({ ...event, mood: "calm" })],
    [
      "a state",
      (event) => (event.task ? { task: { ...event.task, status: { state: "TASK_STATE_DRAWING" as never } } } : event),
    ],
    [
      "a field of an artifact",
      (event) => (event.task ? { task: { ...event.task, artifacts: [{ artifactId: "a", parts: [part] }] } } : event),
    ],
  ])("onDeliver may not add %s: the answer fails, and the task is unaffected", async (_, onDeliver) => {
    const made = extended(agent, { uri, onDeliver });
    const { id } = await made.send("hi");
    await expect(made.get(id, active)).rejects.toMatchObject({ code: "InternalError" });
    expect((await made.get(id)).status.state).toBe("TASK_STATE_COMPLETED");
  });
});

describe("metadata and data that do not match their schemas", () => {
  const fields = {
    metadata: {
      message: { at: z.iso.datetime() },
      request: { n: z.number() },
      part: { lang: z.string() },
      artifact: { draft: z.boolean() },
      statusUpdate: { step: z.int() },
      artifactUpdate: { pace: z.string() },
    },
    data: { form: { mediaType: "application/x-form", schema: z.object({ amount: z.number() }) } },
  };
  const profile: AnyExtension = { uri, kind: "profile", ...fields };
  const agent: OnMessage = async function* (turn) {
    const { message } = ext(turn) as { message?: object };
    yield turn.artifact({ parts: [{ text: JSON.stringify(message) }] });
  };
  const wrong = {
    metadata: { [`${uri}/at`]: "secret-yesterday" },
    parts: [
      { text: "hi", metadata: { [`${uri}/lang`]: 5 } },
      { data: { amount: "7" }, mediaType: "application/x-form" },
    ],
  };
  const request = {
    message: { messageId: "m", role: "ROLE_USER" as const, ...wrong },
    metadata: { [`${uri}/n`]: "7" },
  };
  const context = { principal: { subject: "anonymous" }, version: "1.0", extensions: [uri] };
  const text = { defaultInputModes: ["*/*"] };

  test("reject a message as InvalidParams that names each of them, and not its values", async () => {
    const made = harness(agent, { extensions: [profile], behaviour: text });
    const refused = await made.service
      .call("SendMessage", request, context)
      .catch((error: unknown) => error as A2AError);
    expect(refused).toMatchObject({ code: "InvalidParams" });
    expect((refused as A2AError).fields?.map(({ field }) => field)).toEqual([
      `metadata["${uri}/n"]`,
      `message.metadata["${uri}/at"]`,
      `message.parts[0].metadata["${uri}/lang"]`,
      "message.parts[1].data.amount",
    ]);
    expect(JSON.stringify(refused)).not.toContain("yesterday");
    // No caller requested the extension, so the server ignores the values.
    const plain = harness(
      async function* (turn) {
        yield turn.completed("ok");
      },
      { extensions: [profile], behaviour: text },
    );
    const { payload } = await plain.service.call("SendMessage", request, { ...context, extensions: [] });
    expect(payload.value.task?.status.state).toBe("TASK_STATE_COMPLETED");
  });

  test("of a data extension are left out and logged", async () => {
    const made = harness(agent, { extensions: [{ ...profile, kind: "data" }], behaviour: text });
    const { payload } = await made.service.call("SendMessage", request, context);
    expect(payload.value.task?.artifacts?.[0]?.parts[0]?.text).toBe("{}");
    expect(made.log).toHaveLength(1);
    expect(made.log[0]).toMatchObject({
      level: "info",
      extension: uri,
      problems: expect.stringContaining("message.parts[1].data.amount") as string,
    });
    expect(JSON.stringify(made.log)).not.toContain("yesterday");
  });

  test("of an agent fail its task, and the log names the event; of a data extension they are logged", async () => {
    const writing: OnMessage = async function* (turn) {
      yield turn.working("at it", { metadata: { [`${uri}/step`]: 1.5 } });
      yield turn.artifact({ parts: [{ text: "x" }], metadata: { [`${uri}/draft`]: "yes" } });
    };
    const failing = harness(writing, { extensions: [profile] });
    expect((await failing.send("go", active)).status.state).toBe("TASK_STATE_FAILED");
    const said = failing.log.map(({ cause }) => String(cause)).join("\n");
    expect(said).toContain(
      `turn.working(), event 1 of turn 1: it breaks a schema of the extension ${uri}: metadata["${uri}/step"] does not fit`,
    );
    expect((await failing.send("go")).status.state).toBe("TASK_STATE_COMPLETED");
    const harmless = harness(writing, { extensions: [{ ...profile, kind: "data" }] });
    expect((await harmless.send("go", active)).status.state).toBe("TASK_STATE_COMPLETED");
    expect(harmless.log.map(({ level, extension }) => [level, extension])).toEqual([
      ["warn", uri],
      ["warn", uri],
    ]);
  });

  test("of an agent that yields no event at all are its mistake, not the extension's", async () => {
    const made = harness(
      async function* () {
        yield { kind: "artifact", artifact: null } as never;
      },
      { extensions: [profile] },
    );
    expect((await made.send("go", active)).status.state).toBe("TASK_STATE_FAILED");
    expect(made.log.map(({ cause }) => String(cause)).join()).not.toContain(uri);
  });

  test("with an async schema: the call is rejected, and the log says whose mistake it is", async () => {
    // Is asynchronous only for some values, so `defineExtension()` cannot detect the mistake.
    const validate = (value: unknown) =>
      value === "noon" ? Promise.reject(new Error("late")) : { issues: [{ message: "no" }] };
    const late = { "~standard": { version: 1 as const, vendor: "x", validate } };
    const slow = { uri, metadata: { message: { at: late } } } as AnyExtension;
    const made = harness(agent, { extensions: [slow] });
    await expect(
      made.send("go", { ...active, message: { metadata: { [`${uri}/at`]: "noon" } } }),
    ).rejects.toMatchObject({
      code: "InternalError",
      cause: {
        message: expect.stringMatching(
          /urn:example:turns failed: TypeError: A schema of an extension, of .+, returned a promise/,
        ) as string,
      },
    });
  });
});
