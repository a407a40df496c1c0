import { utf8Length } from "../base/index.ts";
import { jsonTextOf } from "../base/json-text.ts";
import { A2AError, type NewRecord, type TaskArtifactUpdateEvent, type TaskState } from "../model/index.ts";
import type { AgentEvent } from "../protocol/index.ts";

/** An error in what an agent yielded. The text is for the log. The client gets a general sentence. */
export function agentMistake(text: string): A2AError {
  return new A2AError("InvalidAgentResponse", text);
}

export function isMistake(error: unknown): error is A2AError {
  return error instanceof A2AError && error.code === "InvalidAgentResponse";
}

/** Adds the event to the text of a mistake, so that its line in the code can be found. Other errors are returned unchanged. */
export function mistakeOf(event: AgentEvent, place: string, error: unknown): unknown {
  const mistake = asMistake(error);
  return isMistake(mistake) ? agentMistake(`${nameOf(event)}, ${place}: ${mistake.message}`) : error;
}

/** A value of an agent as JSON text. `name`: the call that the agent gave it to. */
export function jsonOf(value: unknown, name: string): string {
  try {
    return jsonTextOf(value);
  } catch (error) {
    const mistake = asMistake(error);
    throw isMistake(mistake) ? agentMistake(`${name}: ${mistake.message}`) : error;
  }
}

/** `jsonTextOf` throws for a bigint or a circle. Its error names neither the event nor what to do. */
function asMistake(error: unknown): unknown {
  if (!(error instanceof TypeError || error instanceof RangeError)) return error;
  return agentMistake(`it is not JSON; use plain objects, arrays, strings and numbers: ${error.message}`);
}

/** For an event that does not fit into its task. */
export function eventDoesNotFit(record: NewRecord, taskBytes: number): A2AError {
  const event = `${nameOfRecord(record)} of ${utf8Length(record.json)} bytes`;
  return agentMistake(`${event} does not fit: limits.taskBytes is ${taskBytes}`);
}

const builders: { readonly [State in TaskState]?: string } = {
  TASK_STATE_WORKING: "working",
  TASK_STATE_INPUT_REQUIRED: "inputRequired",
  TASK_STATE_AUTH_REQUIRED: "authRequired",
  TASK_STATE_COMPLETED: "completed",
  TASK_STATE_FAILED: "failed",
  TASK_STATE_REJECTED: "rejected",
};

/** An event as the code that made it. */
export function nameOf(event: AgentEvent): string {
  switch (event?.kind) {
    case "status": {
      const builder = builders[event.state];
      return builder === undefined ? `A status ${describe(event.state)}` : `turn.${builder}()`;
    }
    case "artifact": {
      const id = describe(event.artifact?.artifactId);
      return event.append === true ? `turn.append(${id})` : `turn.artifact({ artifactId: ${id} })`;
    }
    case "reply":
      return "turn.reply()";
    case "checkpoint":
      return "turn.saveCheckpoint()";
    case "wait":
      return "A wait";
    default:
      return `What was yielded, ${describe(event)}`;
  }
}

/** The same for the record of an event. */
function nameOfRecord({ kind, json, state }: NewRecord): string {
  if (kind !== "artifactUpdate") return state === undefined ? "A record" : `A status ${describe(state)}`;
  const { artifact } = JSON.parse(json) as TaskArtifactUpdateEvent;
  return `An update of artifact ${describe(artifact.artifactId)}`;
}

/** The beginning of a value as JSON. */
function describe(value: unknown): string {
  try {
    return (JSON.stringify(value) ?? String(value)).slice(0, 200);
  } catch {
    return typeof value;
  }
}
