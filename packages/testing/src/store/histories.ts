import fc from "fast-check";
import { taskStates, type NewRecord } from "@parley/a2a/internal/model/index";
import type { AppendItem, ContextEffect, TaskEffect } from "@parley/server/internal/store/index";
import { contextIds, featureKeys, features, keys, owners, scopes, taskIds, type Step } from "./comparison.ts";

/**
 * Random histories of a store. They use few names and times, so that items affect the same tasks, and texts that are hard to
 * encode. Only this file needs fast-check. It is loaded when the random test runs.
 */

const owner = fc.oneof({ weight: 8, arbitrary: fc.constant(owners[0]) }, fc.constantFrom(...owners));
const scope = fc.constantFrom(...scopes);
const taskId = fc.oneof({ weight: 4, arbitrary: fc.constantFrom(taskIds[0], taskIds[1]) }, fc.constantFrom(...taskIds));
const contextId = fc.constantFrom(...contextIds);
const time = fc.integer({ min: 0, max: 12 });
const words = fc.oneof(fc.constantFrom("", "x", '"\\"', "😀", "\u0000", "\ud800"), fc.string({ maxLength: 8 }));
const metadata = fc.dictionary(fc.constantFrom("m", "n", "__proto__", '"'), fc.jsonValue({ maxDepth: 1 }), {
  maxKeys: 2,
});
const json = fc.jsonValue({ maxDepth: 1 }).map((value) => JSON.stringify(value));
const bytes = fc.integer({ min: 0, max: 1000 });
/** Number of history messages that a query requests. */
const history = fc.option(fc.integer({ min: 0, max: 4 }), { nil: undefined });

interface Shape {
  readonly kind: "message" | "statusUpdate" | "artifactUpdate";
  readonly event: object;
  readonly rest: Pick<NewRecord, "time" | "actor" | "turn" | "attempt">;
  readonly more: Partial<NewRecord>;
}

const message = fc.record(
  {
    messageId: words,
    role: fc.constantFrom("ROLE_USER", "ROLE_AGENT"),
    parts: fc.array(fc.record({ text: words }), { minLength: 1, maxLength: 2 }),
    metadata,
  },
  { requiredKeys: ["messageId", "role", "parts"] },
);
const rest = fc.record({
  time,
  actor: fc.constantFrom("user", "agent", "system", "delegate"),
  turn: fc.integer({ min: 1, max: 9 }),
  attempt: fc.integer({ min: 1, max: 3 }),
});
const more = fc.record(
  { extensions: fc.array(words, { maxLength: 2 }), trace: words, call: json },
  { requiredKeys: [] },
);
const running = fc.constantFrom("TASK_STATE_WORKING", "TASK_STATE_INPUT_REQUIRED", "TASK_STATE_AUTH_REQUIRED");
const state = fc.oneof({ weight: 6, arbitrary: running }, { weight: 1, arbitrary: fc.constantFrom(...taskStates) });

const shape: fc.Arbitrary<Shape> = fc.oneof(
  fc.tuple(message, rest, more).map(([event, rest, more]) => ({ kind: "message", event, rest, more }) as const),
  fc
    .tuple(state, fc.record({ message, metadata, keep: fc.boolean() }, { requiredKeys: [] }), rest, more)
    .map(([state, { message, metadata, keep }, rest, more]) => ({
      kind: "statusUpdate" as const,
      event: { status: { state, ...(message && { message }) }, ...(metadata && { metadata }) },
      rest,
      more: { ...more, state, ...(keep !== undefined && { keep }) },
    })),
  fc
    .tuple(
      fc.record(
        {
          artifactId: fc.constantFrom("a1", "a2", "\u0000"),
          parts: fc.array(fc.record({ text: words }), { maxLength: 2 }),
          name: words,
          metadata,
          extensions: fc.array(words, { maxLength: 2 }),
        },
        { requiredKeys: ["artifactId", "parts"] },
      ),
      fc.record({ append: fc.boolean(), lastChunk: fc.boolean() }, { requiredKeys: [] }),
      rest,
      more,
    )
    .map(
      ([artifact, flags, rest, more]) =>
        ({ kind: "artifactUpdate", event: { artifact, ...flags }, rest, more }) as const,
    ),
);

const leases: fc.Arbitrary<TaskEffect> = fc.oneof(
  fc
    .tuple(fc.constantFrom("n1", "n2"), time, time)
    .map(([holder, now, until]) => ({ effect: "lease", op: "acquire", holder, now, until }) as const),
  time.map((until) => ({ effect: "lease", op: "renew", until }) as const),
  fc.constantFrom("release", "revoke").map((op) => ({ effect: "lease", op }) as const),
);
const contextState = fc.option(json).map((value) => ({ effect: "contextState", value }) as const);
const once = fc
  .tuple(fc.constantFrom(...keys), words, time, fc.record({ until: time, answer: json }, { requiredKeys: [] }))
  .map(([key, hash, now, more]) => ({ effect: "once", key, hash, now, ...more }) as const);
const featureKey = fc.record({ feature: fc.constantFrom(...features), key: fc.constantFrom(...featureKeys) });
/** Few values and times, so that some conditions hold. */
const featureState = fc.record(
  { value: fc.constantFrom("1", '"\\u0000"'), due: fc.constantFrom(3, 7) },
  { requiredKeys: ["value"] },
);
const condition = fc.record({ if: fc.option(featureState) }, { requiredKeys: [] });
const featureEffect: fc.Arbitrary<TaskEffect> = fc.oneof(
  fc
    .tuple(featureKey, featureState, condition)
    .map(([key, state, more]) => ({ effect: "feature", op: "set", ...key, ...state, ...more }) as const),
  fc.tuple(featureKey, condition).map(([key, more]) => ({ effect: "feature", op: "delete", ...key, ...more }) as const),
  fc
    .tuple(fc.constantFrom(...features), time)
    .map(([feature, due]) => ({ effect: "feature", op: "wake", feature, due }) as const),
);
const taskEffect: fc.Arbitrary<TaskEffect> = fc.oneof(
  // Weighted, because most fail: the task does not exist, or the condition does not hold.
  { weight: 3, arbitrary: featureEffect },
  leases,
  fc
    .option(
      fc.record(
        {
          turn: time,
          attempt: time,
          input: time,
          deaths: fc.integer({ min: 1, max: 9 }),
          outlived: fc.integer({ min: 1, max: 9 }),
          alone: fc.constant(true as const),
          suspended: fc.constant(true as const),
        },
        { requiredKeys: ["turn", "attempt", "input"] },
      ),
    )
    .map((run) => ({ effect: "run", run }) as const),
  fc.option(json).map((value) => ({ effect: "checkpoint", value }) as const),
  fc.option(json).map((value) => ({ effect: "taskState", value }) as const),
  once,
  contextState,
);
const contextEffect: fc.Arbitrary<ContextEffect> = fc.oneof(
  contextState,
  once,
  fc
    .tuple(message, time)
    .map(([event, time]) => ({ effect: "contextMessage", json: JSON.stringify(event), time }) as const),
);

/** An item that creates a task. */
const create: fc.Arbitrary<AppendItem> = fc
  .tuple(
    owner,
    taskId,
    contextId,
    fc.array(message, { maxLength: 2 }),
    fc.array(shape, { maxLength: 3 }),
    rest,
    fc.record({ metadata }, { requiredKeys: [] }),
    effectsOf(taskEffect),
  )
  .map(([owner, taskId, contextId, history, shapes, rest, more, effects]) => {
    const state = "TASK_STATE_SUBMITTED" as const;
    const task = { id: taskId, contextId, status: { state }, ...(history.length > 0 && { history }), ...more };
    const first: NewRecord = { kind: "task", json: JSON.stringify(task), state, ...rest };
    return {
      task: { ...owner, taskId },
      create: { contextId },
      records: [first, ...shapes.map((shape) => record(shape, taskId, contextId))],
      ...fenced(effects, 0),
    };
  });
/** An item for a task that may exist. */
const change: fc.Arbitrary<AppendItem> = fc
  .tuple(
    owner,
    taskId,
    fc.array(shape, { maxLength: 3 }),
    // Mostly without conditions, so that most items change something.
    fc.record({
      expect: rarely(fc.integer({ min: 0, max: 6 })),
      fence: rarely(fc.integer({ min: 0, max: 2 })),
      maxBytes: rarely(fc.integer({ min: 0, max: 2000 })),
    }),
    effectsOf(taskEffect),
  )
  .map(([owner, taskId, shapes, { expect, fence, maxBytes }, effects]) => ({
    task: { ...owner, taskId },
    records: shapes.map((shape) => record(shape, taskId, "c1")),
    ...(expect !== undefined && { expect }),
    ...(maxBytes !== undefined && { maxBytes }),
    ...fenced(effects, fence),
  }));
/** The item that the engine appends to cancel a task. */
const cancel: fc.Arbitrary<AppendItem> = fc.tuple(owner, taskId, time).map(([owner, taskId, time]) => ({
  task: { ...owner, taskId },
  records: [record(canceled(time), taskId, "c1")],
  effects: [
    { effect: "lease", op: "revoke" },
    { effect: "run", run: null },
  ],
}));
const inContext: fc.Arbitrary<AppendItem> = fc
  .tuple(owner, contextId, effectsOf(contextEffect))
  .map(([owner, contextId, effects]) => ({ context: { ...owner, contextId }, effects }));

const item = fc.oneof({ weight: 3, arbitrary: create }, { weight: 6, arbitrary: change }, cancel, inContext);
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 12, arbitrary: fc.array(item, { maxLength: 5 }).map((items) => ({ step: "append", items }) as const) },
  fc
    .record({ now: time, deleteBefore: time, compactBefore: time }, { requiredKeys: ["now"] })
    .map((options) => ({ step: "sweep", ...options }) as const),
  fc
    .tuple(
      scope,
      fc.record({ contextId, state, since: time, history, bytes }, { requiredKeys: [] }),
      fc.integer({ min: 1, max: 3 }),
      fc.boolean(),
    )
    .map(([scope, { contextId, state, since, history, bytes }, limit, artifacts]) => ({
      step: "list" as const,
      scope,
      query: {
        limit,
        artifacts,
        ...(contextId !== undefined && { contextId }),
        ...(state !== undefined && { state }),
        ...(since !== undefined && { since }),
        ...(history !== undefined && { history }),
        ...(bytes !== undefined && { bytes }),
      },
    })),
  fc.constant({ step: "crash" } as const),
);

/** Steps on a store, and the number of messages that the final comparison requests. */
export interface History {
  readonly steps: readonly Step[];
  readonly history: number | undefined;
}

/**
 * Calls `replay` with `runs` random histories. If `replay` throws, rejects with the seed and the shortest history found that
 * makes it throw.
 */
export function forHistories(runs: number, replay: (history: History) => Promise<void>): Promise<void> {
  const histories = fc.record({ steps: fc.array(step, { maxLength: 25, size: "max" }), history });
  return fc.assert(fc.asyncProperty(histories, replay), { numRuns: runs });
}

function record({ kind, event, rest, more }: Shape, taskId: string, contextId: string): NewRecord {
  const whole = kind === "message" ? event : { taskId, contextId, ...event };
  return { kind, json: JSON.stringify(whole), ...rest, ...more };
}

function canceled(time: number): Shape {
  const state = "TASK_STATE_CANCELED";
  return {
    kind: "statusUpdate",
    event: { status: { state } },
    rest: { time, actor: "system", turn: 1, attempt: 1 },
    more: { state },
  };
}

/** Adds the fence that renewing or releasing a lease requires. */
function fenced(effects: TaskEffect[], fence: number | undefined): { effects: TaskEffect[]; fence?: number } {
  const needed = effects.some(
    (effect) => effect.effect === "lease" && (effect.op === "renew" || effect.op === "release"),
  );
  return { effects, ...((needed || fence !== undefined) && { fence: fence ?? 1 }) };
}

/** Effects of one item, each key at most once. */
function effectsOf<Effect extends TaskEffect | ContextEffect>(effect: fc.Arbitrary<Effect>): fc.Arbitrary<Effect[]> {
  return fc.uniqueArray(effect, { maxLength: 3, selector: (one) => (one.effect === "once" ? one.key : one) });
}

function rarely<T>(arbitrary: fc.Arbitrary<T>): fc.Arbitrary<T | undefined> {
  return fc.oneof({ weight: 4, arbitrary: fc.constant(undefined) }, arbitrary);
}
