import type { JsonObject, JsonValue, StandardSchema } from "@parley/a2a/internal/model/index";
import {
  anything,
  list,
  number,
  object,
  oneName,
  optional,
  required,
  string,
  struct,
  timestamp,
  type Schema,
} from "@parley/a2a/internal/model/schema";
import { standardSchema } from "@parley/a2a/internal/extensions/schemas";

/* What a trace is, and how one is read: in the shape of the specification and in that of its sample, in both cases of names. */

/** Who was called. `HOST` is the agent itself, as when its model thinks. The specification has `AGENT` and `TOOL` alone. */
export type CallType = "AGENT" | "TOOL" | "HOST";

/** What an agent has done for one response. */
export interface ResponseTrace {
  /** Identifier of the trace. */
  readonly traceId: string;
  /** Its steps, in the order in which they began. */
  readonly steps: readonly TraceStep[];
}

/** One operation. */
export interface TraceStep {
  /** Identifier of the step. */
  readonly stepId: string;
  /** The trace that it belongs to. */
  readonly traceId?: string;
  /** The step that it is a part of. Absent: none. */
  readonly parentStepId?: string;
  /** Who was called. */
  readonly callType?: CallType;
  /** Name of the tool or the agent. */
  readonly name?: string;
  /** What a tool was called with. */
  readonly parameters?: JsonObject;
  /** What an agent was asked. */
  readonly requests?: JsonValue;
  /** Address of an agent. */
  readonly agentUrl?: string;
  /** What the agent that was called has done for it. */
  readonly responseTrace?: ResponseTrace;
  /** What kind of step it is, such as `tool_call`. */
  readonly stepType?: string;
  /** What it cost. The specification names no unit. */
  readonly cost?: number;
  /** How many tokens it took. */
  readonly totalTokens?: number;
  /** Anything else. */
  readonly attributes?: JsonObject;
  /** How long it took, in milliseconds. The specification names no unit; its sample has milliseconds. */
  readonly latency?: number;
  /** When it began, as a time in UTC. */
  readonly startTime?: string;
  /** When it ended. Absent: it has not ended. */
  readonly endTime?: string;
  /** Why it failed. */
  readonly error?: JsonValue;
}

/** How deep traces may be in each other. */
const deepest = 16;

/** A number as ProtoJSON may write it: an `int64` is a text. */
const amount: Schema<number> = (value, state) =>
  number()(typeof value === "string" && /^-?\d{1,15}$/.test(value) ? Number(value) : value, state);

/** By name, or by number as protobuf has it. Another one, of a later version, is left out. */
const callTypes = new Map<unknown, CallType>([
  ["AGENT", "AGENT"],
  ["TOOL", "TOOL"],
  ["HOST", "HOST"],
  [1, "AGENT"],
  [2, "TOOL"],
]);
const callType: Schema<CallType> = (value) => callTypes.get(value);

function stepSchema(depth: number): Schema<TraceStep> {
  const nested: Schema<ResponseTrace> = (value, state) => traceAt(depth + 1)(value, state);
  const schema = object<TraceStep>({
    stepId: required(string),
    traceId: optional(string),
    parentStepId: optional(string),
    callType: optional(callType),
    name: optional(string),
    parameters: optional(struct),
    requests: optional<JsonValue>(anything),
    agentUrl: optional(string),
    responseTrace: optional(nested),
    stepType: optional(string),
    cost: optional(amount),
    totalTokens: optional(amount),
    attributes: optional(struct),
    latency: optional(amount),
    startTime: optional(timestamp),
    endTime: optional(timestamp),
    error: optional<JsonValue>(anything),
  });
  return (value, state) => schema(stepOf(value), state);
}

const tooDeep: Schema<never> = oneName([]);

function traceAt(depth: number): Schema<ResponseTrace> {
  const schema = object<ResponseTrace>({
    traceId: required(string),
    steps: required(list<TraceStep>(depth < deepest ? stepSchema(depth) : tooDeep)),
  });
  // Empty lists are left out by ProtoJSON.
  return (value, state) => schema(withSteps(named(value)), state);
}

function withSteps(trace: unknown): unknown {
  return isRecord(trace) && trace["traceId"] !== undefined ? { steps: [], ...trace } : trace;
}

/** The schema of a trace in any of its shapes. */
export const traceSchema: StandardSchema<ResponseTrace> = standardSchema(traceAt(0));

/** A trace in any of its shapes; `undefined` for anything else. */
export function readTrace(value: unknown): ResponseTrace | undefined {
  const result = traceSchema["~standard"].validate(value);
  return result instanceof Promise || result.issues !== undefined ? undefined : result.value;
}

type Fields = Readonly<Record<string, unknown>>;

function isRecord(value: unknown): value is Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** An object with JSON names in place of proto names. */
function named(value: unknown): unknown {
  if (!isRecord(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => [
      name.replace(/_([a-z\d])/g, (_, letter: string) => letter.toUpperCase()),
      member,
    ]),
  );
}

/** A step with the members of both shapes under the names of `TraceStep`. */
function stepOf(value: unknown): unknown {
  const step = named(value);
  if (!isRecord(step)) return value;
  const { stepAction, additionalAttributes, attributes: own, ...rest } = step;
  const action = named(stepAction) as Fields | undefined;
  const called = isRecord(action) ? action : {};
  const tool = named(called["toolInvocation"] ?? undefined);
  const agent = named(called["agentInvocation"] ?? undefined);
  const { toolName, ...ofTool } = isRecord(tool) ? tool : { toolName: undefined };
  const { agentName, ...ofAgent } = isRecord(agent) ? agent : { agentName: undefined };
  return {
    ...attributesOf(step, additionalAttributes ?? own),
    ...present({ name: toolName ?? agentName }),
    ...ofTool,
    ...ofAgent,
    ...present(rest),
    ...(rest["parentStepId"] === "" && { parentStepId: undefined }),
  };
}

/** The specification has no place for an error and a type of step: this package writes them as attributes there. */
function attributesOf(step: Fields, attributes: unknown): Fields {
  if (!isRecord(attributes)) return {};
  const isSpecified = !("error" in step) && !("stepType" in step);
  const { error, step_type: stepType, name, ...others } = attributes;
  const rest = isSpecified ? others : attributes;
  return {
    ...(isSpecified && present({ error, stepType, name })),
    ...(Object.keys(rest).length > 0 && { attributes: rest }),
  };
}

function present(fields: Fields): Fields {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined && value !== null));
}
