import type { NewRecord } from "@parley/a2a/internal/model/index";
import type { AgentEvent } from "@parley/a2a/internal/protocol/index";
import type { TaskKey } from "../../store/index.ts";
import { artifactRecord, statusRecord, type Origin, type StatusInit } from "../log/index.ts";
import { agentMistake } from "../shared/mistakes.ts";

/** Where an event of an agent stands. */
export interface EventPlace {
  readonly key: TaskKey;
  readonly origin: Origin;
  /** Whose it is: one of a delegation comes from another agent. */
  readonly actor: "agent" | "delegate";
  /** Its number in its turn, for the id of its message. */
  readonly number: string;
  /** In milliseconds since the Unix epoch. */
  readonly time: number;
}

/**
 * The record of an event that an agent yielded, or that came from another agent.
 *
 * @throws A2AError `InvalidAgentResponse` for what is no event.
 */
export function recordOf(event: AgentEvent, place: EventPlace): NewRecord {
  if (place.actor === "delegate" && event?.kind !== "artifact" && event?.kind !== "status") {
    throw agentMistake("an extension turned an event of another agent into another kind");
  }
  switch (event?.kind) {
    case "artifact":
      return artifactRecord(place.origin, event, place.actor, place.time);
    case "status":
      return status(event, place);
    case "reply":
      // The task was made before the answer was known: the answer completes it.
      return status({ state: "TASK_STATE_COMPLETED", message: event.message }, place);
    default:
      throw agentMistake(
        typeof event === "object" && event !== null && Symbol.asyncIterator in event
          ? "it is a stream of events: write yield* turn.stream(…), with the star"
          : "it is no event: yield what the builders of the turn give, turn.working() or turn.artifact()",
      );
  }
}

function status(init: StatusInit, { key, origin, actor, number, time }: EventPlace): NewRecord {
  const messageId = `${key.taskId}-${origin.turn}-${origin.attempt}-${number}`;
  return statusRecord(origin, init, actor, messageId, time);
}
