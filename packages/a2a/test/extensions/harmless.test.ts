import { describe, expect, test } from "vitest";
import type { AppendedEvent, Extension } from "../../src/protocol/index.ts";
import { harness, type Harness, type OnMessage } from "../../../server/test/engine/support.ts";

/* A data extension only adds data, so the server only logs its failures (A2A, topic "Extensions"). */

const uri = "urn:example:harmless";
const active = { extensions: [uri] };

function extended(onMessage: OnMessage, extension: Partial<Extension>, limits = {}): Harness {
  return harness(onMessage, { extensions: [{ uri, kind: "data", ...extension }], limits });
}

/** Returns an event with this value in its metadata. */
function adding(event: AppendedEvent, value: unknown): AppendedEvent {
  const metadata = { added: value };
  if (event.kind === "delegated") return event;
  return event.kind === "reply"
    ? { ...event, message: { ...event.message, metadata: metadata as never } }
    : { ...event, metadata: metadata as never };
}

const circle: Record<string, unknown> = {};
circle["circle"] = circle;

function nested(depth: number): unknown {
  let value: unknown = 1;
  for (let at = 0; at < depth; at += 1) value = [value];
  return value;
}

const result: OnMessage = async function* (turn) {
  yield turn.working("at it");
  yield turn.artifact({ parts: [{ text: "result" }] });
};

/** Invalid results of hooks. */
const returned: Readonly<Record<string, (event: AppendedEvent) => unknown>> = {
  nothing: () => undefined,
  null: () => null,
  "a number": () => 1,
  "a promise": (event) => Promise.resolve(event),
  "a promise that is rejected": () => Promise.reject(new Error("no")),
  "another kind": (event) => ({ ...event, kind: "other" }),
  "another state": (event) => ({ ...event, kind: "status", state: "TASK_STATE_SINGING" }),
  "a state that ends the task": (event) => ({ ...event, kind: "status", state: "TASK_STATE_FAILED" }),
  "a checkpoint": () => ({ kind: "checkpoint", value: 1 }),
  "too many bytes": (event) => adding(event, "x".repeat(5000)),
  "a bigint": (event) => adding(event, 1n),
  "a circle": (event) => adding(event, circle),
  "deep nesting": (event) => adding(event, nested(100_000)),
  "nesting that some runtimes accept": (event) => adding(event, nested(500)),
  "a member that throws": (event) =>
    adding(event, {
      toJSON() {
        throw new Error("no");
      },
    }),
  "an append to an artifact that is not open": () => ({
    kind: "artifact",
    artifact: { artifactId: "other", parts: [{ text: "x" }] },
    append: true,
  }),
};

describe("onAppend of a data extension: an invalid result is left out and logged", () => {
  test.each(Object.entries(returned))("%s", async (_name, onAppend) => {
    const made = extended(result, { onAppend: onAppend as never }, { eventBytes: 4096 });
    const task = await made.send("go", active);
    expect([task.status.state, task.artifacts?.[0]?.parts[0]?.text]).toEqual(["TASK_STATE_COMPLETED", "result"]);
    expect(made.log.filter(({ level }) => level === "warn").map(({ extension }) => extension)).toContain(uri);
  });

  test.each(Object.entries(returned).filter(([name]) => name !== "too many bytes"))(
    "%s, in a direct reply",
    async (_name, onAppend) => {
      const made = extended((turn) => turn.reply("direct"), { onAppend: onAppend as never });
      const { message } = await made.ask("go", active);
      expect(message?.parts[0]?.text).toBe("direct");
      expect(made.log.filter(({ level }) => level === "warn").map(({ extension }) => extension)).toContain(uri);
    },
  );
  test("its changes to the event itself, before it throws", async () => {
    const made = extended(result, {
      onAppend(event) {
        Object.assign(event, { state: "TASK_STATE_FAILED", metadata: { big: 1n } });
        if (event.kind === "artifact") (event.artifact.parts as unknown[]).length = 0;
        throw new Error("no");
      },
    });
    const task = await made.send("go", active);
    expect([task.status.state, task.artifacts?.[0]?.parts[0]?.text]).toEqual(["TASK_STATE_COMPLETED", "result"]);
  });

  test("metadata that does not fit into the task", async () => {
    const made = extended(
      async function* (turn) {
        for (let at = 0; at < 6; at += 1) {
          yield turn.artifact({ parts: [{ text: "x".repeat(500) }] });
          await turn.flush();
        }
      },
      { onAppend: (event) => adding(event, "x".repeat(3000)) },
      { taskBytes: 18_000 },
    );
    const task = await made.send("go", active);
    expect([task.status.state, task.artifacts?.length]).toEqual(["TASK_STATE_COMPLETED", 6]);
    expect(
      task.artifacts?.[0]?.metadata === undefined && made.log.some(({ limit }) => limit === "limits.taskBytes"),
    ).toBe(true);
  });

  test("rows that do not fit into the task", async () => {
    const made = extended(
      async function* (turn) {
        for (let at = 0; at < 4; at += 1) yield turn.artifact({ artifactId: `a${at}`, parts: [{ text: "x" }] });
      },
      {
        onAppend(event, { rows }) {
          if (event.kind === "artifact")
            for (let at = 0; at < 200; at += 1) rows?.set(`${event.artifact.artifactId}-${at}`, "1");
          return event;
        },
      },
    );
    const task = await made.send("go", active);
    expect([task.status.state, task.artifacts?.length]).toEqual(["TASK_STATE_COMPLETED", 4]);
  });
});

describe("onFinish: an invalid result is left out and logged", () => {
  test.each(
    Object.entries({ bigint: 1n, circle, nested: nested(100_000), deep: nested(500), large: "x".repeat(20_000_000) }),
  )("%s", async (_name, value) => {
    const made = extended(result, { onFinish: () => ({ value }) as never });
    const task = await made.send("go", active);
    expect([task.status.state, task.artifacts?.[0]?.parts[0]?.text]).toEqual(["TASK_STATE_COMPLETED", "result"]);
    expect(made.log.filter(({ level }) => level === "warn").map(({ extension }) => extension)).toContain(uri);
  });
});

/** Values that JSON cannot represent. */
const noJson = { bigint: 1n, circle, nested: nested(100_000), deep: nested(500) };

describe("a result of onAccept that is not JSON", () => {
  test.each(Object.entries(noJson))("%s: is left out and logged", async (_name, value) => {
    const made = extended(result, {
      onAccept: ({ message }) => ({ message: { ...message, metadata: { value } as never } }),
    });
    const task = await made.send("go", active);
    expect(task).toMatchObject({ status: { state: "TASK_STATE_COMPLETED" }, history: [{ parts: [{ text: "go" }] }] });
    expect(made.log).toMatchObject([{ level: "warn", extension: uri, hook: "onAccept" }]);
  });

  test.each(Object.entries(noJson))("%s: rejects the message, of another kind", async (_name, value) => {
    const made = extended(result, {
      kind: "profile",
      onAccept: ({ message }) => ({ message: { ...message, metadata: { value } as never } }),
    });
    await expect(made.send("go", active)).rejects.toMatchObject({ code: "InternalError" });
  });

  test("too many bytes of a data extension are left out", async () => {
    const made = extended(result, {
      onAccept: ({ message }) => ({ message: { ...message, metadata: { value: "x".repeat(40 << 20) } } }),
    });
    expect(await made.send("go", active)).toMatchObject({ status: { state: "TASK_STATE_COMPLETED" } });
  });

  test.each(["data", "profile"] as const)("a message that the hook itself changes, of kind %s", async (kind) => {
    const made = extended(result, {
      kind,
      onAccept(input) {
        Object.assign(input.message, { messageId: "another" });
        return input;
      },
    });
    const outcome = made.send("go", { ...active, message: { messageId: "own" } });
    if (kind === "data") expect((await outcome).history?.[0]?.messageId).toBe("own");
    else await expect(outcome).rejects.toMatchObject({ code: "InternalError" });
  });
});

describe("a result of onDeliver of a data extension that is not JSON", () => {
  test.each(Object.entries(noJson))("%s: is left out and logged", async (_name, value) => {
    const made = extended(result, {
      onDeliver: (event) =>
        event.task === undefined ? event : { task: { ...event.task, metadata: { value } as never } },
    });
    const task = await made.send("go", active);
    expect(JSON.parse(JSON.stringify(task))).toMatchObject({ status: { state: "TASK_STATE_COMPLETED" } });
    expect(made.log).toMatchObject([{ level: "warn", extension: uri, hook: "onDeliver" }]);
  });
});

describe("a data extension that fails at each event", () => {
  const many: OnMessage = async function* (turn) {
    for (let at = 0; at < 50; at += 1) {
      yield turn.artifact({ artifactId: `a${at}`, parts: [{ text: "x" }], metadata: { k: 1 } });
    }
  };
  const schema = (validate: (value: unknown) => never) => ({
    "~standard": { version: 1 as const, vendor: "x", validate },
  });
  const throwing = (): never => {
    throw new Error("no");
  };
  const broken = (validate: (value: unknown) => never): Partial<Extension> => ({
    metadata: { artifact: { k: { key: "k", schema: schema(validate) } } },
  });

  /** Is asynchronous only for some values, so `defineExtension()` cannot detect the mistake. */
  const later = (value: unknown): never => (value === 1 ? Promise.reject(new Error("late")) : { issues: [] }) as never;

  test.each<[string, Partial<Extension>]>([
    ["a schema that throws", broken(throwing)],
    ["a schema that answers by a promise", broken(later)],
    ["a schema that refuses everything", broken(() => ({ issues: [{ message: "no" }] }) as never)],
    ["onAppend", { onAppend: throwing }],
    ["onDeliver", { onDeliver: throwing }],
  ])("is logged once a task: %s", async (_name, extension) => {
    const made = extended(many, extension);
    const reading = await made.stream("go", active);
    const events = await reading.all();
    const lines = (): number => made.log.filter((line) => line["extension"] === uri).length;
    expect([events.length > 50, lines()]).toEqual([true, 1]);
    await made.send("again", active);
    expect(lines()).toBe(2);
  });

  test("is logged once a task if the task has no room", async () => {
    const made = extended(many, { onAppend: (event) => adding(event, "x".repeat(5000)) }, { eventBytes: 4096 });
    await made.send("go", active);
    expect(made.log.filter(({ limit }) => limit === "limits.eventBytes")).toHaveLength(1);
  });
});

test("for other kinds, a result of onDeliver that is not JSON fails the call, and the error names the extension", async () => {
  const made = extended(result, {
    kind: "profile",
    onDeliver: (event) =>
      event.task === undefined ? event : { task: { ...event.task, metadata: { value: 1n } as never } },
  });
  await expect(made.send("go", active)).rejects.toMatchObject({
    code: "InternalError",
    cause: { message: expect.stringContaining(`onDeliver of the extension ${uri} failed`) as string },
  });
});
