import type {
  Artifact,
  JsonObject,
  JsonValue,
  Part,
  StandardSchema,
  StreamResponse,
  Task,
} from "@parley/a2a/internal/model/index";
import {
  anything,
  isObject,
  list,
  number,
  object,
  oneName,
  optional,
  required,
  type Schema,
  string,
  struct,
  timestamp,
} from "@parley/a2a/internal/model/schema";
import { standardSchema } from "@parley/a2a/internal/extensions/schemas";
import { fitting, isJsonObject } from "../shared/values.ts";

/* The model of a trace and its reader. It reads the shapes of the specification and of its sample, in snake_case and camelCase. */

/** The callee. `HOST` is the agent itself, such as its model. The specification only has `AGENT` and `TOOL`. */
export type CallType = "AGENT" | "TOOL" | "HOST";

/** The steps that an agent took for one response. */
export interface ResponseTrace {
  /** Identifier of the trace. */
  readonly traceId: string;
  /** Its steps, in the order of their start. */
  readonly steps: readonly TraceStep[];
}

/** One step. */
export interface TraceStep {
  /** Identifier of the step. */
  readonly stepId: string;
  /** The trace it belongs to. */
  readonly traceId?: string;
  /** The parent step. Absent: none. */
  readonly parentStepId?: string;
  /** The callee. */
  readonly callType?: CallType;
  /** Name of the tool or the agent. */
  readonly name?: string;
  /** Parameters of a tool. */
  readonly parameters?: JsonObject;
  /** Request to an agent. */
  readonly requests?: JsonValue;
  /** Address of an agent. */
  readonly agentUrl?: string;
  /** The trace of the called agent. */
  readonly responseTrace?: ResponseTrace;
  /** Kind of step, such as `tool_call`. */
  readonly stepType?: string;
  /** Cost, in no specified unit. */
  readonly cost?: number;
  /** Number of tokens. */
  readonly totalTokens?: number;
  /** Other data. */
  readonly attributes?: JsonObject;
  /** Duration in milliseconds, as in the sample; the specification names no unit. */
  readonly latency?: number;
  /** Start, as a time in UTC. */
  readonly startTime?: string;
  /** End. Absent: still running. */
  readonly endTime?: string;
  /** Why it failed. */
  readonly error?: JsonValue;
}

/** Maximum nesting of traces. */
const deepest = 16;

/** A number, or its digits as text: ProtoJSON writes an `int64` as text. */
const amount: Schema<number> = (value, state) =>
  number()(typeof value === "string" && /^-?\d{1,15}$/.test(value) ? Number(value) : value, state);

/** By name, or by protobuf number. Types of later versions are left out. */
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
  // ProtoJSON leaves out empty lists.
  return (value, state) => schema(withSteps(named(value)), state);
}

function withSteps(trace: unknown): unknown {
  return isObject(trace) && trace["traceId"] !== undefined ? { steps: [], ...trace } : trace;
}

const trace = traceAt(0);

/** The schema of a trace in any of its shapes. */
export const traceSchema: StandardSchema<ResponseTrace> = standardSchema(trace);

/** Reads a trace in any of its shapes; `undefined` for anything else. */
export function readTrace(value: unknown): ResponseTrace | undefined {
  return fitting(trace, value);
}

type Fields = Readonly<Record<string, unknown>>;

/** An object with JSON names instead of proto names. */
function named(value: unknown): unknown {
  if (!isObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => [
      name.replace(/_([a-z\d])/g, (_, letter: string) => letter.toUpperCase()),
      member,
    ]),
  );
}

/** The members of an object with JSON names; none for anything else. */
function fieldsOf(value: unknown): Fields {
  const fields = named(value);
  return isObject(fields) ? fields : {};
}

/** A step of either shape with the names of `TraceStep`. */
function stepOf(value: unknown): unknown {
  const step = named(value);
  if (!isObject(step)) return value;
  const { stepAction, additionalAttributes, attributes: own, ...rest } = step;
  const called = fieldsOf(stepAction);
  const { toolName, ...ofTool } = fieldsOf(called["toolInvocation"]);
  const { agentName, ...ofAgent } = fieldsOf(called["agentInvocation"]);
  return {
    ...attributesOf(step, additionalAttributes ?? own),
    ...present({ name: toolName ?? agentName }),
    ...ofTool,
    ...ofAgent,
    ...present(rest),
    ...(rest["parentStepId"] === "" && { parentStepId: undefined }),
  };
}

/** The specification has no members for an error and a step type: this package writes them as attributes. */
function attributesOf(step: Fields, attributes: unknown): Fields {
  if (!isObject(attributes)) return {};
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

/** The shape of a written trace: the sample's, or the specification's. */
export type TraceShape = "sample" | "specification";

/** A trace as JSON. */
export function writeTrace({ traceId, steps }: ResponseTrace, shape: TraceShape): JsonObject {
  return { trace_id: traceId, steps: steps.map((step) => writeStep(step, shape)) };
}

/** A step as JSON. */
export function writeStep(step: TraceStep, shape: TraceShape): JsonObject {
  return shape === "sample" ? asSample(step) : asSpecified(step);
}

/**
 * The sample writes absent members as `null`. It has no nested trace, so this uses the specification's name for it.
 */
function asSample(step: TraceStep): JsonObject {
  const { responseTrace, agentUrl } = step;
  return {
    step_id: step.stepId,
    trace_id: step.traceId ?? null,
    parent_step_id: step.parentStepId ?? null,
    call_type: step.callType ?? null,
    name: step.name ?? null,
    parameters: step.parameters ?? null,
    requests: step.requests ?? null,
    step_type: step.stepType ?? null,
    cost: step.cost ?? null,
    total_tokens: step.totalTokens ?? null,
    additional_attributes: step.attributes ?? {},
    latency: step.latency ?? null,
    start_time: step.startTime ?? null,
    end_time: step.endTime ?? null,
    error: step.error ?? null,
    ...(agentUrl !== undefined && { agent_url: agentUrl }),
    ...(responseTrace !== undefined && { response_trace: writeTrace(responseTrace, "sample") }),
  };
}

/**
 * In the specification, numbers are whole and attributes are text. It has no members for an error, a step type, or a
 * call of the host.
 */
function asSpecified(step: TraceStep): JsonObject {
  const { callType, name, cost, error, stepType, attributes = {} } = step;
  const isHost = callType !== "AGENT" && callType !== "TOOL";
  const additional = {
    ...attributes,
    ...(error !== undefined && { error }),
    ...(stepType !== undefined && { step_type: stepType }),
    ...(isHost && name !== undefined && { name }),
    ...(cost !== undefined && !Number.isInteger(cost) && { cost }),
  };
  return {
    step_id: step.stepId,
    trace_id: step.traceId ?? "",
    parent_step_id: step.parentStepId ?? "",
    ...(!isHost && { call_type: callType, step_action: actionOf(step) }),
    ...(cost !== undefined && { cost: Math.round(cost) }),
    ...(step.totalTokens !== undefined && { total_tokens: Math.round(step.totalTokens) }),
    additional_attributes: Object.fromEntries(Object.entries(additional).map(([key, value]) => [key, textOf(value)])),
    ...(step.latency !== undefined && { latency: Math.round(step.latency) }),
    ...(step.startTime !== undefined && { start_time: step.startTime }),
    ...(step.endTime !== undefined && { end_time: step.endTime }),
  };
}

function actionOf({
  callType,
  name = "",
  parameters = {},
  requests,
  agentUrl = "",
  responseTrace,
}: TraceStep): JsonObject {
  if (callType === "TOOL") return { tool_invocation: { tool_name: name, parameters } };
  return {
    agent_invocation: {
      agent_url: agentUrl,
      agent_name: name,
      requests: structOf(requests),
      ...(responseTrace !== undefined && { response_trace: writeTrace(responseTrace, "specification") }),
    },
  };
}

/** Wraps a request that is not an object. */
function structOf(requests: JsonValue | undefined): JsonObject {
  if (requests === undefined || requests === null) return {};
  return isJsonObject(requests) ? requests : { request: requests };
}

function textOf(value: JsonValue | undefined): string {
  return typeof value === "string" ? value : JSON.stringify(value ?? null);
}

/** Longest text that is parsed as a trace, in characters. */
const longestText = 1 << 20;

/**
 * Finds the trace in an event. The specification puts it into the metadata of a message or an artifact, or into a
 * separate artifact. The sample puts it into the metadata of the status update, which becomes metadata of the task, or
 * into a text of the artifact.
 */
export function findTrace(event: StreamResponse, key: string): ResponseTrace | undefined {
  for (const value of candidates(event, key)) {
    const trace = value === undefined ? undefined : readTrace(value);
    if (trace !== undefined) return trace;
  }
  return undefined;
}

function* candidates(event: StreamResponse, key: string): Generator<unknown> {
  const { message, statusUpdate, artifactUpdate, task } = event;
  const at = (metadata: JsonObject | undefined): unknown =>
    metadata !== undefined && Object.hasOwn(metadata, key) ? metadata[key] : undefined;
  yield at(message?.metadata);
  yield at(statusUpdate?.status.message?.metadata);
  yield at(statusUpdate?.metadata);
  if (artifactUpdate !== undefined) {
    yield at(artifactUpdate.metadata);
    yield* ofArtifact(artifactUpdate.artifact, at);
  }
  if (task !== undefined) yield* ofTask(task, at);
}

type At = (metadata: JsonObject | undefined) => unknown;

/** Newest first, beginning with the status message. */
function* ofTask({ status, metadata, artifacts = [] }: Task, at: At): Generator<unknown> {
  yield at(status.message?.metadata);
  yield at(metadata);
  for (const artifact of artifacts.toReversed()) yield* ofArtifact(artifact, at);
}

function* ofArtifact({ metadata, parts }: Artifact, at: At): Generator<unknown> {
  yield at(metadata);
  for (const part of parts) yield ofPart(part);
}

function ofPart({ text, data }: Part): unknown {
  if (data !== undefined) return data;
  if (text === undefined || text.length > longestText || !/^\s*\{/.test(text) || !/"trace_?id"/i.test(text))
    return undefined;
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
