import { inspect } from "node:util";
import * as z from "zod";
import { describe, expect, expectTypeOf, test } from "vitest";
import { defineExtension, extensionMethod, ExtensionReader } from "../../src/extensions/index.ts";
import { traceability } from "@parley/extensions/traceability";
import { defineAgent } from "@parley/server/internal/agent/index";
import type { A2AError, Artifact, Message, StandardSchema, StreamResponse, Task } from "../../src/model/index.ts";
import type { AnyExtension, EventReads, ExtensionTypes, TurnReads } from "../../src/protocol/index.ts";
import { callContext, inProcess } from "@parley/testing";

const uri = "https://example.com/extensions/notes/v1";

const notes = defineExtension({
  uri,
  metadata: {
    message: {
      at: { key: ["example.com/at", "example.com/former/at"], schema: z.iso.datetime() },
      mood: z.enum(["calm", "cross"]),
    },
    request: { urgent: z.boolean() },
    artifact: { draft: z.boolean() },
    task: { priority: z.number() },
    statusUpdate: { step: z.int() },
    artifactUpdate: { pace: z.string() },
  },
  data: {
    form: { mediaType: "application/x-form", schema: z.object({ amount: z.number() }) },
    tagged: {
      matches: ({ data }) => typeof data === "object" && data !== null && "tag" in data,
      schema: z.object({ tag: z.string() }),
    },
  },
  subStates: {
    drawing: { state: "TASK_STATE_WORKING", key: "generating-image" },
    paying: { state: "TASK_STATE_INPUT_REQUIRED", key: "payment", value: "required" },
  },
});

const at = "2026-01-31T12:00:00Z";

function messageWith(init: Partial<Message> = {}): Message {
  return { messageId: "m", role: "ROLE_USER", parts: [{ text: "hello" }], ...init };
}

/** Returns the extension's data in a message, as a turn reads it. */
function turnReads(extension: AnyExtension, message: Message): TurnReads<ExtensionTypes> {
  return new ExtensionReader(extension).turn(message, undefined);
}

/** Returns the extension's data in an event, as a client reads it. */
function eventReads(source: StreamResponse | Task | Message | Artifact): EventReads<ExtensionTypes> {
  return new ExtensionReader(notes).event(source);
}

describe("turn.ext() (A2A 1.0 §4.6)", () => {
  const seen: unknown[] = [];
  const agent = defineAgent({
    name: "Notes",
    description: "Reads notes.",
    version: "1.0.0",
    skills: [],
    defaultInputModes: ["*/*"],
    extensions: [notes],
    async *onMessage(turn) {
      const reads = turn.ext(notes);
      expectTypeOf(reads?.message.mood).toEqualTypeOf<"calm" | "cross" | undefined>();
      seen.push(reads && { message: reads.message, request: reads.request, data: reads.data });
      yield turn.working("Drawing", { metadata: {} });
      yield turn.artifact({
        parts: [{ text: "done" }, ...(reads === undefined ? [] : [reads.part("form", { amount: 7 })])],
        metadata: reads?.metadata("artifact", { draft: true }) ?? {},
      });
    },
  });

  test("reads the values of the message, its request and its parts, typed, and writes those of the agent", async () => {
    const { engine, service, card } = inProcess(agent);
    expect(card.capabilities.extensions).toEqual([{ uri }]);
    const { payload } = await service.call(
      "SendMessage",
      {
        message: messageWith({
          metadata: { "example.com/former/at": at, [`${uri}/mood`]: "calm", other: 1 },
          parts: [
            { data: { amount: 3 }, mediaType: "application/x-form; charset=utf-8" },
            { data: { tag: "a" }, mediaType: "application/json" },
            { data: { amount: 4 } },
          ],
        }),
        metadata: { [`${uri}/urgent`]: true },
      },
      { ...callContext(), extensions: [uri] },
    );
    expect(seen.pop()).toEqual({
      message: { at, mood: "calm" },
      request: { urgent: true },
      data: { form: [{ amount: 3 }], tagged: [{ tag: "a" }] },
    });
    expect(payload.value.task?.artifacts?.[0]).toMatchObject({
      metadata: { [`${uri}/draft`]: true },
      parts: [{ text: "done" }, { data: { amount: 7 }, mediaType: "application/x-form" }],
    });
    await engine.close();
  });

  test("is undefined if the caller did not request the extension: its metadata is then ignored", async () => {
    const { engine, service } = inProcess(agent);
    const { payload } = await service.call(
      "SendMessage",
      { message: messageWith({ metadata: { [`${uri}/mood`]: "no mood" } }) },
      callContext(),
    );
    expect(seen.pop()).toBeUndefined();
    expect(payload.value.task?.status.state).toBe("TASK_STATE_COMPLETED");
    await engine.close();
  });
});

describe("reading untrusted input", () => {
  test("leaves out missing and invalid values, and never throws", () => {
    const hostile = messageWith({
      metadata: JSON.parse(`{"__proto__": {"x": 1}, "example.com/at": "yesterday", "${uri}/mood": {"a": [[[]]]}}`),
      parts: [
        { data: { tag: 5 } },
        { data: null },
        { data: { amount: "1" }, mediaType: "application/x-form" },
        { text: "t", mediaType: "application/x-form" },
      ],
    });
    const reads = turnReads(notes, hostile);
    expect(reads.message).toEqual({});
    expect(reads.request).toEqual({});
    expect(reads.data).toEqual({ form: [], tagged: [] });
  });

  test("uses the value under another key if the one under the first key does not match", () => {
    const metadata = { "example.com/at": 5, "example.com/former/at": at };
    expect(turnReads(notes, messageWith({ metadata })).message).toEqual({ at });
  });

  test("is absent if a schema or `matches` throws, or a schema changes its input", () => {
    const message = messageWith({ metadata: { [`${uri}/a`]: { b: 1 } }, parts: [{ data: { c: 1 } }] });
    const throwing = schemaOf(() => {
      throw new Error("no");
    });
    const changing = schemaOf((value) => {
      (value as { b: number }).b = 2;
      return { value };
    });
    const matches = (): never => {
      throw new Error("no");
    };
    const extension: AnyExtension = {
      uri,
      metadata: { message: { a: throwing, changed: { key: `${uri}/a`, schema: changing } } },
      data: { c: { matches, schema: changing } },
    };
    const reads = turnReads(extension, message);
    expect(reads.message).toEqual({ changed: { b: 2 } });
    expect(reads.data).toEqual({ c: [] });
    expect(message.metadata).toEqual({ [`${uri}/a`]: { b: 1 } });
  });

  test("an async schema cannot read, and the error says so", () => {
    const schema = schemaOf(() => Promise.reject(new Error("late")));
    const reads = turnReads(
      { uri, metadata: { message: { a: schema } } },
      messageWith({ metadata: { [`${uri}/a`]: 1 } }),
    );
    expect(() => reads.message).toThrow(
      new TypeError(`A schema of an extension, of ${uri}/a, returned a promise; it must be synchronous`),
    );
  });
});

describe("an async schema of a data extension", () => {
  const asks: unknown[] = [];
  // Is asynchronous only for some values, so `defineExtension()` cannot detect the mistake.
  const schema = schemaOf((value) => {
    asks.push(value);
    return value === "later" ? Promise.reject(new Error("late")) : { value };
  });
  const field = { key: "k", schema };
  const extension = defineExtension({
    uri,
    kind: "data",
    paramsSchema: schema,
    metadata: { message: { k: field }, artifact: { k: field }, statusUpdate: { k: field } },
    data: { form: { mediaType: "application/x-form", schema } },
  });
  const warned: string[] = [];
  const quiet = (): void => {};
  const logger = { debug: quiet, info: quiet, error: quiet, warn: (text: string) => void warned.push(text) };
  const part = { data: "later", mediaType: "application/x-form" };

  test("fails no call and no task: values are not read, are written unchecked, and are logged", async () => {
    const read: unknown[] = [];
    const agent = defineAgent({
      name: "Notes",
      description: "Reads notes.",
      version: "1.0.0",
      skills: [],
      defaultInputModes: ["*/*"],
      extensions: [extension],
      async *onMessage(turn) {
        const reads = turn.ext(extension);
        read.push(reads?.message, reads?.data);
        yield turn.artifact({
          parts: [reads?.part("form", "later") ?? { text: "" }],
          metadata: reads?.metadata("artifact", { k: "later" }) ?? {},
        });
      },
    });
    const { engine, service } = inProcess(agent, { logger });
    const message = messageWith({ metadata: { k: "later" }, parts: [part] });
    const { payload } = await service.call("SendMessage", { message }, { ...callContext(), extensions: [uri] });
    await engine.close();
    expect(read).toEqual([{}, { form: [] }]);
    expect(payload.value.task).toMatchObject({
      status: { state: "TASK_STATE_COMPLETED" },
      artifacts: [{ metadata: { k: "later" }, parts: [part] }],
    });
    // The client logs one warning for the message, and one for the artifact.
    expect(warned).toHaveLength(2);
  });

  test("at a client: the event, the call and the params of the card", async () => {
    const told: unknown[] = [];
    const reader = new ExtensionReader(extension, (name, mistake) => void told.push([name, mistake?.message]));
    const reads = reader.event({ artifactId: "a", metadata: { k: "later" }, parts: [part] });
    expect([reads.artifact, reads.data]).toEqual([{}, { form: [] }]);
    expect(told).toEqual([
      ["artifact.metadata.k", expect.stringContaining("returned a promise")],
      ["data.form", expect.stringContaining("returned a promise")],
    ]);
  });

  test("is rejected by the definition if it is async for any plain value", () => {
    const wrong = schemaOf(async (value) => ({ value }));
    const refine = z.string().refine(async () => true);
    for (const each of [wrong, refine]) {
      expect(() => defineExtension({ uri, kind: "data", metadata: { message: { a: each } } })).toThrow(
        "metadata.message.a must be synchronous, but this schema returns a promise",
      );
    }
    const rest = { method: "POST", path: "/a:b" } as const;
    const method = extensionMethod({ request: wrong, response: schema, rest, grpc: "/a.b/C" });
    const definition = { uri, paramsSchema: wrong, data: { d: { mediaType: "a/b", schema: refine } } };
    const error = thrownBy(() => defineExtension({ ...definition, methods: { "a/b": method } })) as A2AError;
    expect(error.fields.map((one) => one.field)).toEqual(["paramsSchema", 'methods["a/b"].request', "data.d.schema"]);
  });
});

describe("event.ext()", () => {
  const stamped: Message = messageWith({
    role: "ROLE_AGENT",
    metadata: { "example.com/at": at, "generating-image": true },
  });
  const artifact: Artifact = {
    artifactId: "a",
    parts: [{ data: { amount: 1 }, mediaType: "application/x-form" }],
    metadata: { [`${uri}/draft`]: false },
  };
  const status = { state: "TASK_STATE_WORKING", message: stamped } as const;
  const task: Task = { id: "t", contextId: "c", status, artifacts: [artifact], metadata: { [`${uri}/priority`]: 3 } };
  const ids = { taskId: "t", contextId: "c" };

  test("reads a message, alone and in an event", () => {
    for (const source of [stamped, { message: stamped }]) {
      expect(eventReads(source).message).toEqual({ at });
      expect(eventReads(source).subState).toBeUndefined();
    }
  });

  test("reads a status update: its metadata, its message, and its sub-state", () => {
    const reads = eventReads({ statusUpdate: { ...ids, status, metadata: { [`${uri}/step`]: 2 } } });
    expect([reads.message, reads.statusUpdate, reads.subState]).toEqual([{ at }, { step: 2 }, "drawing"]);
    // The value of a sub-state counts only in that sub-state.
    const asked = {
      state: "TASK_STATE_INPUT_REQUIRED",
      message: { ...stamped, metadata: { payment: "required" } },
    } as const;
    expect(eventReads({ statusUpdate: { ...ids, status: asked } }).subState).toBe("paying");
    const done = { ...asked, state: "TASK_STATE_COMPLETED" } as const;
    expect(eventReads({ statusUpdate: { ...ids, status: done } }).subState).toBeUndefined();
    expect(eventReads({ statusUpdate: { ...ids, status: { state: "TASK_STATE_WORKING" } } }).subState).toBeUndefined();
  });

  test("reads an artifact, alone and in an event", () => {
    const reads = eventReads({ artifactUpdate: { ...ids, artifact, metadata: { [`${uri}/pace`]: "slow" } } });
    expect([reads.artifact, reads.artifactUpdate, reads.data]).toEqual([
      { draft: false },
      { pace: "slow" },
      { form: [{ amount: 1 }], tagged: [] },
    ]);
    expect(eventReads(artifact).artifact).toEqual({ draft: false });
  });

  test("reads a task: its metadata, its status, its last artifact, and the data of all of them", () => {
    for (const source of [task, { task }]) {
      const reads = eventReads(source);
      expect([reads.task, reads.message, reads.artifact, reads.subState]).toEqual([
        { priority: 3 },
        { at },
        { draft: false },
        "drawing",
      ]);
      expect(reads.data).toEqual({ form: [{ amount: 1 }], tagged: [] });
    }
    expect(eventReads({ ...task, artifacts: [] }).artifact).toEqual({});
  });
});

describe("values that were read, printed by console.log and JSON.stringify", () => {
  test("of a message: its values by place", () => {
    const reads = turnReads(
      notes,
      messageWith({
        metadata: { "example.com/at": at },
        parts: [{ data: { amount: 7 }, mediaType: "application/x-form" }],
      }),
    );
    const values = { message: { at }, request: {}, data: { form: [{ amount: 7 }], tagged: [] } };
    expect(JSON.parse(JSON.stringify({ reads }))).toEqual({ reads: values });
    expect(inspect(reads, { depth: null })).toBe(inspect(values, { depth: null }));
    expect(inspect({ reads }, { depth: null })).toBe(inspect({ reads: values }, { depth: null }));
  });

  test("of an event: its values by place, and its sub-state, if any", () => {
    const artifact: Artifact = { artifactId: "a", parts: [{ text: "x" }], metadata: { [`${uri}/draft`]: true } };
    const none = { message: {}, task: {}, statusUpdate: {}, artifactUpdate: {}, data: { form: [], tagged: [] } };
    const reads = eventReads(artifact);
    expect(JSON.parse(JSON.stringify(reads))).toEqual({ ...none, artifact: { draft: true } });
    expect(inspect(reads)).toContain("artifact: { draft: true }");
    const message = messageWith({ metadata: { "generating-image": true } });
    const working = { taskId: "t", contextId: "c", status: { state: "TASK_STATE_WORKING", message } } as const;
    expect(inspect(eventReads({ statusUpdate: working }))).toContain("subState: 'drawing'");
  });

  test("of a trace: the values of the event", () => {
    const event = { task: { id: "t", status: { state: "TASK_STATE_COMPLETED" } } } as const;
    const { onEvent } = traceability as unknown as { onEvent(event: StreamResponse): unknown };
    expect(inspect(onEvent(event))).toBe("{ trace: undefined }");
  });
});

describe("written values", () => {
  const writes = new ExtensionReader(notes).writes();

  test("have the first key of a field, and are checked", () => {
    expect(writes.metadata("message" as never, { at, mood: undefined } as never)).toEqual({ "example.com/at": at });
    expect(() => writes.metadata("message" as never, { mood: "glad" } as never)).toThrow(
      /^message\.metadata\.mood does not fit/,
    );
    expect(() => writes.metadata("message" as never, { toString: 1 } as never)).toThrow(
      /has no toString in message\.metadata$/,
    );
    expect(() => writes.metadata("part" as never, { mood: "calm" } as never)).toThrow(/has no mood in part\.metadata$/);
  });

  test("are a part that can be read again, or an error", () => {
    expect(writes.part("tagged", { tag: "a" })).toEqual({ data: { tag: "a" } });
    expect(() => writes.part("form", { amount: "7" })).toThrow(/^form\.amount does not fit/);
    expect(() => writes.part("none", 1)).toThrow(/has no data parts named none$/);
  });

  test("annotate a state with a sub-state", () => {
    expect(writes.subState("drawing")).toEqual({ "generating-image": true });
    expect(writes.subState("paying")).toEqual({ payment: "required" });
    expect(() => writes.subState("toString")).toThrow(/has no sub-state toString$/);
  });
});

/** Returns the exception that a function throws. */
function thrownBy(run: () => unknown): unknown {
  try {
    return expect.fail(String(run()));
  } catch (thrown) {
    return thrown;
  }
}

function schemaOf(validate: StandardSchema["~standard"]["validate"]): StandardSchema {
  return { "~standard": { version: 1, vendor: "test", validate } };
}
