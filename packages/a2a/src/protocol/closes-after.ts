import { isTerminal, type StreamResponse, type TaskState } from "../model/index.ts";
import type { StreamName } from "./operations.ts";

/** The state in an event; `undefined` where the event has none. */
export function stateOf(event: StreamResponse): TaskState | undefined {
  return event.statusUpdate?.status.state ?? event.task?.status.state;
}

/**
 * Whether a stream ends with this event. Every stream ends at a message and at a terminal state (A2A 1.0 §3.1.2). The stream
 * of a send also ends at INPUT_REQUIRED, because only the caller's next message can follow (§11.7). At AUTH_REQUIRED every
 * stream stays open, because the authorization may be given outside of the protocol (§7.6.1).
 */
export function closesAfter(event: StreamResponse, operation: StreamName): boolean {
  if (event.message !== undefined) return true;
  const state = stateOf(event);
  if (state === undefined) return false;
  return isTerminal(state) || (operation === "SendStreamingMessage" && state === "TASK_STATE_INPUT_REQUIRED");
}
