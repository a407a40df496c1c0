import type { NewRecord } from "./log.ts";
import { isInterrupted, isTerminal } from "./states.ts";

/**
 * Whether the messages of a record belong to the history of its task. The history holds, in the order of the log, the
 * messages of the user, the messages of interrupted and terminal statuses, and progress messages that the agent asked to
 * keep. Nothing else decides this.
 *
 * A message enters the history together with its status and not when the next status replaces that one, so the history of a
 * finished task is complete (A2A 1.0 §3.7 leaves the choice to the agent). The current status message can therefore be in
 * `status.message` and in `history`, under one `messageId`. Within `history` no message appears twice.
 */
export function isHistory({ kind, state, keep }: Pick<NewRecord, "kind" | "state" | "keep">): boolean {
  switch (kind) {
    case "task":
    case "message":
      return true;
    case "artifactUpdate":
      return false;
    case "statusUpdate":
      return keep === true || (state !== undefined && (isInterrupted(state) || isTerminal(state)));
  }
}
