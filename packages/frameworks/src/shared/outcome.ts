import type { JsonObject } from "@parley/a2a/model";
import type { AgentEvent, Turn } from "@parley/server";

/* How an agent's run ends a turn. */

/** Why the model stopped, and its token usage. */
export interface Ended {
  readonly reason: string;
  readonly usage: Readonly<Record<string, unknown>>;
}

/** Metadata of the last status, following the OpenTelemetry semantic conventions. */
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

/** Text for an answer with finish reason `length`. */
export const isCut = "The answer is incomplete: it reached the model's length limit";

/**
 * Ends a successful turn. Without a text, yields no final status, because the end of the function completes the task. A message that arrived
 * meanwhile then becomes the next turn, whereas an explicit completion would lose that message.
 *
 * @param settle - Sets the final states, which are stored with the end of the turn. If the turn is lost earlier, the next attempt needs the old ones.
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

/** The last status of a failed turn. */
export function failed(turn: Turn, said: string, metadata?: JsonObject): AgentEvent {
  turn.setState(undefined);
  return ended("TASK_STATE_FAILED", said, metadata);
}

function ended(state: "TASK_STATE_COMPLETED" | "TASK_STATE_FAILED", said: string, metadata?: JsonObject): AgentEvent {
  return { kind: "status", state, message: { parts: [{ text: said }] }, ...(metadata && { metadata }) };
}
