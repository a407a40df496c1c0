import type { JsonObject } from "@parley/a2a/model";
import type { AgentEvent, Turn } from "@parley/server";

/* How an agent's run ends a turn. */

/** Why the model has stopped, and what it has used. */
export interface Ended {
  readonly reason: string;
  readonly usage: Readonly<Record<string, unknown>>;
}

/** Metadata of the last status, by the semantic conventions of OpenTelemetry. */
export function metadataOf({ reason, usage: { inputTokens, outputTokens } }: Ended): JsonObject {
  return {
    "gen_ai.response.finish_reasons": [reason],
    ...(typeof inputTokens === "number" && { "gen_ai.usage.input_tokens": inputTokens }),
    ...(typeof outputTokens === "number" && { "gen_ai.usage.output_tokens": outputTokens }),
  };
}

/** Reasons that fail the task. */
export const faults: Readonly<Record<string, string>> = {
  "content-filter": "The model's provider withheld the answer",
  error: "The model failed",
};

/** Said of an answer that has the reason `length`. */
export const isCut = "The answer is cut off: it reached the model's limit";

/**
 * Ends a turn that has succeeded. Without a text the end of the function completes the task: a message that has arrived meanwhile is then
 * the next turn, and would be lost behind a completed task.
 *
 * @param settle - Sets the states that the turn leaves. They are stored with its end: a turn that is lost before it needs the earlier ones.
 */
export function* succeeded(
  turn: Turn,
  said: string | undefined,
  metadata: JsonObject,
  settle: () => void = () => {},
): Generator<AgentEvent, void, void> {
  if (said === undefined) yield { kind: "status", state: "TASK_STATE_WORKING", metadata };
  turn.setState(undefined);
  settle();
  if (said !== undefined) yield ended("TASK_STATE_COMPLETED", said, metadata);
}

/** The last status of a turn that has failed. */
export function failed(turn: Turn, said: string, metadata?: JsonObject): AgentEvent {
  turn.setState(undefined);
  return ended("TASK_STATE_FAILED", said, metadata);
}

function ended(state: "TASK_STATE_COMPLETED" | "TASK_STATE_FAILED", said: string, metadata?: JsonObject): AgentEvent {
  return { kind: "status", state, message: { parts: [{ text: said }] }, ...(metadata && { metadata }) };
}
