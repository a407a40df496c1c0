import { isTerminal, type StreamResponse, type TaskState } from "../model/index.ts";
import type { StreamName } from "./operations.ts";

/** The state that an event tells of its task, if it tells one. */
export function stateOf(event: StreamResponse): TaskState | undefined {
  return event.statusUpdate?.status.state ?? event.task?.status.state;
}

/**
 * Whether a stream ends with this event: at a message or a terminal state always (A2A 1.0 §3.1.2); a stream of a send
 * also at input-required, since nothing can follow but the caller's own next message (§11.7). At auth-required every
 * stream stays open, because the credential may come by another way (§7.6.1).
 */
export function closesAfter(event: StreamResponse, operation: StreamName): boolean {
  if (event.message !== undefined) return true;
  const state = stateOf(event);
  if (state === undefined) return false;
  return isTerminal(state) || (operation === "SendStreamingMessage" && state === "TASK_STATE_INPUT_REQUIRED");
}
