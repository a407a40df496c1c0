import type { JsonObject, JsonValue } from "@parley/a2a/internal/model/index";
import type { ResponseTrace, TraceStep } from "./trace.ts";

/** How a trace is written: as the sample of the extension does, or as its specification says. */
export type TraceShape = "sample" | "specification";

/** A trace as JSON. */
export function writeTrace({ traceId, steps }: ResponseTrace, shape: TraceShape): JsonObject {
  return { trace_id: traceId, steps: steps.map((step) => writeStep(step, shape)) };
}

/** A step as JSON. */
export function writeStep(step: TraceStep, shape: TraceShape): JsonObject {
  return shape === "sample" ? asSample(step) : asSpecified(step);
}

/** The sample has each member, with `null` for what is not known. It knows no trace of another agent: that is added as the specification names it. */
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

/** The specification has whole numbers, texts as attributes, and no members for an error, a type of step, or a call of the host. */
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

/** A request that is no object, in one. */
function structOf(requests: JsonValue | undefined): JsonObject {
  if (requests === undefined || requests === null) return {};
  return typeof requests === "object" && !Array.isArray(requests) ? (requests as JsonObject) : { request: requests };
}

function textOf(value: JsonValue | undefined): string {
  return typeof value === "string" ? value : JSON.stringify(value ?? null);
}
