import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  countsInGeneration,
  isTerminal,
  reduce,
  taskStates,
  TaskFold,
  type Artifact,
  type FoldProblem,
  type JsonObject,
  type LogEvent,
  type Message,
  type NewRecord,
  type Part,
  type RecordKind,
  type Task,
  type TaskState,
} from "../../src/model/index.ts";

const begun: Task = { id: "t", contextId: "c", status: { state: "TASK_STATE_SUBMITTED" } };

function say(messageId: string, role: Message["role"] = "ROLE_AGENT"): Message {
  return { messageId, role, parts: [{ text: messageId }] };
}

function status(state: TaskState, message?: Message, metadata?: JsonObject): LogEvent {
  return {
    statusUpdate: {
      taskId: "t",
      contextId: "c",
      status: { state, ...(message && { message }) },
      ...(metadata && { metadata }),
    },
  };
}

type Chunk = Partial<Artifact> & { append?: boolean; last?: boolean };

function chunk({ append, last, ...artifact }: Chunk): LogEvent {
  return {
    artifactUpdate: {
      taskId: "t",
      contextId: "c",
      artifact: { artifactId: "a", parts: [{ text: "x" }], ...artifact },
      ...(append !== undefined && { append }),
      ...(last !== undefined && { lastChunk: last }),
    },
  };
}

/** Folds these events, each of which must be accepted. */
function foldOf(...events: readonly LogEvent[]): TaskFold {
  const fold = new TaskFold();
  for (const event of [{ task: begun } as const, ...events]) expect(fold.apply(event)).toBeUndefined();
  return fold;
}

describe("artifacts", () => {
  test("grow by parts, and texts are never merged", () => {
    const fold = foldOf(
      chunk({ parts: [{ text: "one" }] }),
      chunk({ parts: [{ text: "two" }, { data: 3 }], append: true }),
      chunk({ parts: [{ text: "four" }], append: true, last: true }),
    );
    expect(fold.snapshot().artifacts).toEqual([
      { artifactId: "a", parts: [{ text: "one" }, { text: "two" }, { data: 3 }, { text: "four" }] },
    ]);
  });

  test("take a new name, and merge metadata and extensions", () => {
    const fold = foldOf(
      chunk({ name: "draft", description: "d", metadata: { a: 1, b: 1 }, extensions: ["x:1"] }),
      chunk({ append: true, name: "final", metadata: { b: 2, c: 2 }, extensions: ["x:2", "x:1"] }),
    );
    expect(fold.snapshot().artifacts?.[0]).toEqual({
      artifactId: "a",
      name: "final",
      description: "d",
      parts: [{ text: "x" }, { text: "x" }],
      metadata: { a: 1, b: 2, c: 2 },
      extensions: ["x:1", "x:2"],
    });
  });

  test("are replaced by an update without append, at the same place, and reopened", () => {
    const fold = foldOf(
      chunk({ name: "old", last: true }),
      chunk({ artifactId: "b" }),
      chunk({ parts: [{ text: "new" }] }),
      chunk({ parts: [{ text: "more" }], append: true }),
    );
    expect(fold.snapshot().artifacts).toEqual([
      { artifactId: "a", parts: [{ text: "new" }, { text: "more" }] },
      { artifactId: "b", parts: [{ text: "x" }] },
    ]);
  });

  test("that are unknown or closed cannot be appended to", () => {
    const fold = foldOf(chunk({ last: true }));
    expect(fold.apply(chunk({ append: true }))).toBe("closedArtifact");
    expect(fold.apply(chunk({ artifactId: "b", append: true }))).toBe("unknownArtifact");
    expect(fold.artifacts.isClosed("a")).toBe(true);
    expect(fold.artifacts.isClosed("b")).toBeUndefined();
    expect(fold.snapshot().artifacts).toEqual([{ artifactId: "a", parts: [{ text: "x" }] }]);
  });
});

describe("history (A2A 1.0 §3.7)", () => {
  test("has messages of the user, of interrupted and terminal statuses, and of kept progress, in log order", () => {
    const fold = new TaskFold();
    const log: readonly (readonly [LogEvent, boolean?])[] = [
      [{ task: { ...begun, history: [say("ask", "ROLE_USER")] } }],
      [status("TASK_STATE_WORKING", say("passing"))],
      [status("TASK_STATE_WORKING", say("kept")), true],
      [status("TASK_STATE_INPUT_REQUIRED", say("question"))],
      [{ message: say("answer", "ROLE_USER") }],
      [status("TASK_STATE_WORKING")],
      [status("TASK_STATE_AUTH_REQUIRED", say("login"))],
      [status("TASK_STATE_COMPLETED", say("done"))],
    ];
    for (const [event, keep] of log) expect(fold.apply(event, keep === undefined ? {} : { keep })).toBeUndefined();
    const { history, status: last } = fold.snapshot();
    expect(history?.map(({ messageId }) => messageId)).toEqual(["ask", "kept", "question", "answer", "login", "done"]);
    expect(last.message?.messageId).toBe("done");
  });

  test("is cut to the newest messages, and absent for none (§3.2.4)", () => {
    const fold = foldOf({ message: say("1") }, { message: say("2") }, { message: say("3") });
    const ids = (history?: number): unknown =>
      fold.snapshot(history === undefined ? {} : { history }).history?.map(({ messageId }) => messageId);
    expect(ids()).toEqual(["1", "2", "3"]);
    expect(ids(2)).toEqual(["2", "3"]);
    expect(ids(9)).toEqual(["1", "2", "3"]);
    expect("history" in fold.snapshot({ history: 0 })).toBe(false);
    expect("history" in foldOf().snapshot()).toBe(false);
  });
});

describe("a task", () => {
  test("collects the metadata of its status updates", () => {
    const fold = foldOf(
      status("TASK_STATE_WORKING", undefined, { a: 1, b: 1 }),
      status("TASK_STATE_WORKING"),
      status("TASK_STATE_WORKING", undefined, JSON.parse('{"b":2,"__proto__":{"evil":1}}') as JsonObject),
    );
    const { metadata } = fold.snapshot();
    expect(JSON.stringify(metadata)).toBe('{"a":1,"b":2,"__proto__":{"evil":1}}');
    expect(metadata?.["evil"]).toBeUndefined();
  });

  test("that is terminal does not accept further events (§3.1.1)", () => {
    for (const state of taskStates.filter(isTerminal)) {
      const fold = foldOf(chunk({}), status(state));
      const before = fold.snapshot();
      for (const event of [status("TASK_STATE_WORKING"), chunk({}), { message: say("late") }] as const) {
        expect(fold.apply(event)).toBe("terminal");
      }
      expect(fold.snapshot()).toEqual(before);
      expect(fold.generation).toBe(3);
    }
  });

  test("must be the first event of its log, once; events of other tasks are rejected", () => {
    expect(new TaskFold().apply(status("TASK_STATE_WORKING"))).toBe("noTask");
    expect(() => new TaskFold().snapshot()).toThrow(TypeError);
    expect(foldOf().apply({ task: begun })).toBe("taskExists");
    const strange: LogEvent = {
      statusUpdate: { taskId: "other", contextId: "c", status: { state: "TASK_STATE_WORKING" } },
    };
    expect(foldOf().apply(strange)).toBe("otherTask");
  });

  test("counts creation, status and artifact events in its generation, and not the user's messages (1.1 draft)", () => {
    expect(foldOf(status("TASK_STATE_WORKING"), { message: say("m") }, chunk({})).generation).toBe(3);
    const kinds: readonly RecordKind[] = ["task", "message", "statusUpdate", "artifactUpdate"];
    expect(kinds.filter(countsInGeneration)).toEqual(["task", "statusUpdate", "artifactUpdate"]);
  });

  test("leaves out artifacts when asked", () => {
    expect("artifacts" in foldOf(chunk({})).snapshot({ artifacts: false })).toBe(false);
  });
});

describe("snapshots", () => {
  test("do not change with later events, and are frozen", () => {
    const record: NewRecord = {
      kind: "artifactUpdate",
      json: JSON.stringify(chunk({ metadata: { deep: { er: 1 } } }).artifactUpdate),
      time: 0,
      actor: "agent",
      turn: 1,
      attempt: 1,
    };
    const fold = foldOf();
    expect(fold.applyRecord(record)).toBeUndefined();
    const first = fold.snapshot();
    const text = JSON.stringify(first);
    fold.apply(chunk({ append: true, metadata: { deep: 2 } }));
    fold.apply(status("TASK_STATE_WORKING", say("m"), { more: true }), { keep: true });
    expect(JSON.stringify(first)).toBe(text);
    const artifact = first.artifacts?.[0] as unknown as { parts: Part[]; metadata: { deep: { er: number } } };
    expect(() => artifact.parts.push({ text: "y" })).toThrow(TypeError);
    expect(() => ((artifact.parts[0] as { text: string }).text = "y")).toThrow(TypeError);
    expect(() => (artifact.metadata.deep.er = 2)).toThrow(TypeError);
    expect(() => ((first as { id: string }).id = "y")).toThrow(TypeError);
  });

  test("can begin a new fold", () => {
    const snapshot = foldOf(chunk({}), status("TASK_STATE_WORKING", undefined, { a: 1 })).snapshot();
    const fold = new TaskFold(snapshot);
    expect(fold.snapshot()).toEqual(snapshot);
    expect(fold.apply(chunk({ append: true }))).toBeUndefined();
    expect(fold.snapshot().artifacts?.[0]?.parts).toHaveLength(2);
    expect(snapshot.artifacts?.[0]?.parts).toHaveLength(1);
  });
});

test("reduce returns the next task and does not change the previous one", () => {
  const task: Task = { ...begun, artifacts: [{ artifactId: "a", parts: [{ text: "x" }] }] };
  const before = structuredClone(task);
  const reduced = reduce(task, chunk({ append: true }));
  expect(reduced).toEqual({
    ok: true,
    task: { ...begun, artifacts: [{ artifactId: "a", parts: [{ text: "x" }, { text: "x" }] }] },
  });
  expect(task).toEqual(before);
  expect(Object.isFrozen(task)).toBe(false);
  expect(reduce(undefined, { task })).toEqual({ ok: true, task });
  expect(reduce(task, chunk({ artifactId: "b", append: true }))).toEqual({ ok: false, problem: "unknownArtifact" });
});

/** The same rules in a slow, simple implementation, which makes a new task for each event. */
class Reference {
  task: Task | undefined;
  generation = 0;
  readonly closed = new Set<string>();

  apply(event: LogEvent, keep: boolean): FoldProblem | undefined {
    const { task } = this;
    if (task === undefined) {
      if (event.task === undefined) return "noTask";
      this.task = event.task;
      this.generation = 1;
      return undefined;
    }
    if (event.task !== undefined) return "taskExists";
    if ((event.statusUpdate ?? event.artifactUpdate)?.taskId === "other") return "otherTask";
    if (isTerminal(task.status.state)) return "terminal";
    if (event.message !== undefined) {
      this.task = { ...task, history: [...(task.history ?? []), event.message] };
      return undefined;
    }
    if (event.statusUpdate !== undefined) {
      const { status: next, metadata } = event.statusUpdate;
      const kept = keep || !["TASK_STATE_SUBMITTED", "TASK_STATE_WORKING"].includes(next.state);
      this.task = {
        ...task,
        status: next,
        ...(next.message && kept && { history: [...(task.history ?? []), next.message] }),
        ...(metadata && { metadata: { ...task.metadata, ...metadata } }),
      };
    } else {
      const { artifact, append, lastChunk } = event.artifactUpdate;
      const artifacts = [...(task.artifacts ?? [])];
      const at = artifacts.findIndex(({ artifactId }) => artifactId === artifact.artifactId);
      const known = artifacts[at];
      if (append) {
        if (known === undefined) return "unknownArtifact";
        if (this.closed.has(artifact.artifactId)) return "closedArtifact";
        artifacts[at] = {
          ...known,
          ...artifact,
          parts: [...known.parts, ...artifact.parts],
          ...(known.metadata && { metadata: { ...known.metadata, ...artifact.metadata } }),
        };
      } else if (known === undefined) artifacts.push(artifact);
      else artifacts[at] = artifact;
      if (lastChunk) this.closed.add(artifact.artifactId);
      else this.closed.delete(artifact.artifactId);
      this.task = { ...task, artifacts };
    }
    this.generation += 1;
    return undefined;
  }
}

const id = fc.constantFrom("a", "b", "c");
const metadata = fc.option(fc.dictionary(fc.constantFrom("k", "l"), fc.integer()), { nil: undefined, freq: 3 });
const maybeMessage = fc.option(
  id.map((messageId) => say(messageId)),
  { nil: undefined },
);
const event: fc.Arbitrary<LogEvent> = fc.oneof(
  { weight: 1, arbitrary: fc.constant<LogEvent>({ task: begun }) },
  { weight: 3, arbitrary: id.map((messageId): LogEvent => ({ message: say(messageId, "ROLE_USER") })) },
  {
    weight: 6,
    arbitrary: fc
      .tuple(fc.constantFrom(...taskStates, ...Array<TaskState>(20).fill("TASK_STATE_WORKING")), maybeMessage, metadata)
      .map(([state, message, more]) => status(state, message, more)),
  },
  {
    weight: 12,
    arbitrary: fc
      .record(
        {
          artifactId: id,
          append: fc.boolean(),
          last: fc.boolean(),
          name: id,
          metadata: fc.dictionary(fc.constantFrom("k", "l"), fc.integer()),
          parts: fc.array(
            fc.string().map((text) => ({ text })),
            { minLength: 1, maxLength: 3 },
          ),
        },
        { requiredKeys: ["artifactId", "parts"] },
      )
      .map(chunk),
  },
  {
    weight: 1,
    arbitrary: fc.constant<LogEvent>({ statusUpdate: { taskId: "other", contextId: "c", status: begun.status } }),
  },
);
const log = fc.array(fc.tuple(event, fc.boolean()), { maxLength: 60 });

describe("any sequence of events", () => {
  test("is folded like the naive fold, problems included", () => {
    fc.assert(
      fc.property(log, (events) => {
        const fold = new TaskFold();
        const reference = new Reference();
        for (const [next, keep] of [[{ task: begun }, false] as const, ...events]) {
          const foreseen = fold.problem(next);
          const problem = fold.apply(next, { keep });
          expect(problem).toBe(foreseen);
          expect(problem).toBe(reference.apply(next, keep));
          expect(fold.snapshot()).toEqual(reference.task);
          expect(fold.generation).toBe(reference.generation);
        }
      }),
      { numRuns: 300 },
    );
  });

  test("does not change earlier snapshots, and no event changes a terminal one", () => {
    fc.assert(
      fc.property(log, (events) => {
        const fold = new TaskFold(begun);
        const taken: [Task, string][] = [];
        for (const [next, keep] of events) {
          const before = fold.snapshot();
          taken.push([before, JSON.stringify(before)]);
          fold.apply(next, { keep });
          const mayChange = !isTerminal(before.status.state);
          expect(mayChange || JSON.stringify(fold.snapshot()) === JSON.stringify(before)).toBe(true);
        }
        for (const [snapshot, text] of taken) expect(JSON.stringify(snapshot)).toBe(text);
      }),
    );
  });

  test("makes the same artifact from pieces as from the whole", () => {
    const parts = fc.array(
      fc.string().map((text) => ({ text })),
      { minLength: 1, maxLength: 20 },
    );
    fc.assert(
      fc.property(parts, fc.infiniteStream(fc.nat({ max: 3 })), (whole, sizes) => {
        const rest = [...whole];
        const pieces: LogEvent[] = [chunk({ parts: rest.splice(0, 1) })];
        while (rest.length > 0)
          pieces.push(chunk({ append: true, parts: rest.splice(0, 1 + (sizes.next().value ?? 0)) }));
        expect(foldOf(...pieces).snapshot()).toEqual(foldOf(chunk({ parts: whole })).snapshot());
      }),
    );
  });

  test("of 20,000 chunks and as many metadata keys is one task", () => {
    const fold = foldOf(chunk({}));
    for (let i = 1; i < 20_000; i += 1) fold.apply(chunk({ append: true, metadata: { [`k${i}`]: i } }));
    const artifact = fold.snapshot().artifacts?.[0];
    expect(artifact?.parts).toHaveLength(20_000);
    expect(Object.keys(artifact?.metadata ?? {})).toHaveLength(19_999);
  });
});
