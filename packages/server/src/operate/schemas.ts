import type { TaskState } from "@parley/a2a/internal/model/index";
import type { EndCause } from "./port.ts";

/* JSON Schemas of the operators' API: the components of its OpenAPI document, named after the types in `port.ts`. */

/** A JSON Schema (2020-12). */
export type JsonSchema = Readonly<Record<string, unknown>>;

const states: readonly TaskState[] = [
  "TASK_STATE_SUBMITTED",
  "TASK_STATE_WORKING",
  "TASK_STATE_INPUT_REQUIRED",
  "TASK_STATE_AUTH_REQUIRED",
  "TASK_STATE_COMPLETED",
  "TASK_STATE_FAILED",
  "TASK_STATE_CANCELED",
  "TASK_STATE_REJECTED",
];

export const actNames: readonly string[] = [
  "cancel",
  "resume",
  "retry-step",
  "drop-wait",
  "pause",
  "unpause",
  "drain",
  "undrain",
];

const text: JsonSchema = { type: "string" };
const time: JsonSchema = { type: "string", format: "date-time" };
const number: JsonSchema = { type: "integer", minimum: 0 };
const flag: JsonSchema = { type: "boolean" };
export const state: JsonSchema = { type: "string", enum: states };

export const ref = (name: string): JsonSchema => ({ $ref: `#/components/schemas/${name}` });
export const listOf = (items: JsonSchema): JsonSchema => ({ type: "array", items });

/** An object; members whose names end with `?` may be absent. */
export function object(members: Readonly<Record<string, JsonSchema>>): JsonSchema {
  const entries = Object.entries(members).map(([name, schema]) => [name.replace(/\?$/, ""), schema] as const);
  const required = Object.keys(members).filter((name) => !name.endsWith("?"));
  return { type: "object", properties: Object.fromEntries(entries), required, additionalProperties: false };
}

const perState: JsonSchema = {
  type: "object",
  propertyNames: state,
  additionalProperties: { type: "integer", minimum: 1 },
};

/** Why tasks failed, or who canceled them. These texts contain no words of an agent. */
export const endCauses: Readonly<Record<EndCause, string>> = {
  failed: "its agent threw an error",
  silent: "its agent ended the turn without an event",
  invalid: "its agent yielded an invalid event",
  idle: "its agent yielded nothing for too long (idleTimeout)",
  late: "its turn took too long (turnTimeout)",
  lost: "its node died or hung, and its agent is not resumable",
  unreadable: "a node could not read its log to continue it",
  full: "it became larger than limits.taskBytes",
  stopped: "its server was stopped, and its agent is not resumable",
  denied: "its user denied an authorization",
  expired: "its user gave no authorization in time",
  unanswered: "no answer arrived in time (retention)",
  delegation: "an agent that it delegated to failed",
  reported: "its agent reported the failure; the status message, which its owner can read, says more",
  operator: "an operator ended it",
};

/** The kinds of explanations, each with its own members. */
const kinds: Readonly<Record<string, Readonly<Record<string, JsonSchema>>>> = {
  done: { state, "cause?": { enum: Object.keys(endCauses) } },
  running: { node: text, steps: listOf(text) },
  nodeSilent: { node: text, silentMs: number },
  lost: {},
  suspended: { deaths: number },
  agentPaused: { agent: text, "by?": text, "reason?": text },
  agentNotServed: { agent: text },
  queued: { ahead: number, more: flag },
  time: { wait: text, until: time },
  event: { wait: text, event: text, "until?": time },
  delegation: { agent: text, "taskId?": text },
  authorization: { "expires?": time },
  input: {},
};

export const schemas: Readonly<Record<string, JsonSchema>> = {
  OperatedTask: object({
    agent: text,
    owner: text,
    taskId: text,
    contextId: text,
    state,
    statusTime: time,
    seq: number,
    bytes: number,
    "node?": text,
    "run?": object({ turn: number, attempt: number, deaths: number, suspended: flag }),
    "waits?": { enum: ["queue", "wait", "delegate"] },
  }),
  Explanation: {
    oneOf: Object.entries(kinds).map(([kind, members]) =>
      object({ kind: { const: kind }, text, "help?": text, since: time, ...members }),
    ),
    description: "Why a task waits, or that it does not. `help` is the command that helps.",
  },
  ShownTask: object({
    task: ref("OperatedTask"),
    why: ref("Explanation"),
    waits: listOf(ref("Explanation")),
    steps: listOf(
      object({
        name: text,
        scope: { enum: ["turn", "task"] },
        state: { enum: ["done", "begun"] },
        "begun?": time,
        "ended?": time,
      }),
    ),
    waited: listOf(object({ name: text, begun: time, ended: time })),
    takeovers: listOf(object({ turn: number, attempt: number, time, node: text, "from?": text })),
    delegations: listOf(object({ number, agent: text, "taskId?": text, state: { enum: ["open", "done"] } })),
    webhooks: listOf(
      object({
        id: text,
        url: text,
        state: { enum: ["idle", "due", "delivering", "parked"] },
        delivered: number,
        seq: number,
        attempts: number,
        "next?": time,
        "problem?": text,
        "problemTime?": time,
        refused: listOf(object({ seq: number, time, problem: text })),
      }),
    ),
    log: listOf(ref("LogEntry")),
    acts: listOf(ref("Act")),
  }),
  LogEntry: object({
    seq: number,
    kind: text,
    time,
    actor: text,
    turn: number,
    attempt: number,
    "state?": state,
    bytes: number,
    "artifactId?": text,
    "trace?": text,
  }),
  TaskLog: object({ task: ref("OperatedTask"), entries: listOf(ref("LogEntry")), "next?": number }),
  Why: object({ task: ref("OperatedTask"), why: ref("Explanation"), waits: listOf(ref("Explanation")) }),
  TaskList: object({ tasks: listOf(ref("OperatedTask")), "next?": text }),
  Counts: object({
    states: perState,
    agents: listOf(object({ agent: text, states: perState, paused: flag })),
    queue: object({ count: number, more: flag, oldestMs: { type: "number", minimum: 0 } }),
    runs: object({ count: number, more: flag, suspended: number, free: number }),
  }),
  Nodes: object({
    nodes: listOf(
      object({
        name: text,
        self: flag,
        "silentMs?": number,
        draining: flag,
        "gone?": { const: true },
        "agents?": listOf(text),
        runs: number,
      }),
    ),
  }),
  PausedAgent: object({ agent: text, since: time, "by?": text, "reason?": text }),
  Paused: object({ agents: listOf(ref("PausedAgent")) }),
  Act: object({
    number,
    act: { enum: actNames },
    time,
    "by?": text,
    "organization?": text,
    "reason?": text,
    outcome: { enum: ["done", "refused"] },
    "agent?": text,
    "taskId?": text,
    "node?": text,
    "name?": text,
    "before?": text,
    "after?": text,
  }),
  Acts: object({ acts: listOf(ref("Act")) }),
  TaskActed: object({ ok: { const: true }, task: ref("OperatedTask"), "continues?": text }),
  AgentPaused: object({ ok: { const: true }, paused: ref("PausedAgent") }),
  AgentUnpaused: object({ ok: { const: true }, agent: text }),
  NodeActed: object({ ok: { const: true }, node: text, "unchecked?": { const: true } }),
  Refusal: object({
    ok: { const: false },
    reason: { enum: ["notFound", "changed", "notPossible"] },
    message: text,
    "task?": ref("OperatedTask"),
  }),
  Error: object({
    error: object({ code: number, status: text, message: text, "details?": listOf({ type: "object" }) }),
  }),
};
