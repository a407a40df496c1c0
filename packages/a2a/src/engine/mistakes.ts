import { A2AError, type NewRecord, type TaskArtifactUpdateEvent, type TaskState } from "../model/index.ts";
import type { AgentEvent } from "../protocol/index.ts";

/** What an agent did wrong. The text is for the operator's log; the client reads a sentence that says nothing of the inside. */
export function agentMistake(text: string): A2AError {
  return new A2AError("InvalidAgentResponse", text);
}

export function isMistake(error: unknown): error is A2AError {
  return error instanceof A2AError && error.code === "InvalidAgentResponse";
}

/** Says of which event a mistake is: the developer has to find the line. Anything else stays as it is. */
export function mistakeOf(event: AgentEvent, place: string, error: unknown): unknown {
  const mistake = asMistake(error);
  return isMistake(mistake) ? agentMistake(`${nameOf(event)}, ${place}: ${mistake.message}`) : error;
}

/** A value of the agent's as JSON text. `name` is how the agent gave it. */
export function jsonOf(value: unknown, name: string): string {
  try {
    return JSON.stringify(value);
  } catch (error) {
    const mistake = asMistake(error);
    throw isMistake(mistake) ? agentMistake(`${name}: ${mistake.message}`) : error;
  }
}

/** What JSON cannot say (a bigint, a circle) makes `JSON.stringify` throw, which names neither the event nor the cure. */
function asMistake(error: unknown): unknown {
  if (!(error instanceof TypeError || error instanceof RangeError)) return error;
  return agentMistake(`it holds what JSON cannot say; give plain objects, lists, texts and numbers: ${error.message}`);
}

const builders: { readonly [State in TaskState]?: string } = {
  TASK_STATE_WORKING: "working",
  TASK_STATE_INPUT_REQUIRED: "inputRequired",
  TASK_STATE_AUTH_REQUIRED: "authRequired",
  TASK_STATE_COMPLETED: "completed",
  TASK_STATE_FAILED: "failed",
  TASK_STATE_REJECTED: "rejected",
};

/** An event in the words of the code that made it. */
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
    default:
      return `What was yielded, ${describe(event)}`;
  }
}

/** The same for what became of it. */
export function nameOfRecord({ kind, json, state }: NewRecord): string {
  if (kind !== "artifactUpdate") return state === undefined ? "A record" : `A status ${describe(state)}`;
  const { artifact } = JSON.parse(json) as TaskArtifactUpdateEvent;
  return `An update of artifact ${describe(artifact.artifactId)}`;
}

/** A value on one line, as far as it can be shown. */
function describe(value: unknown): string {
  try {
    return (JSON.stringify(value) ?? String(value)).slice(0, 200);
  } catch {
    return typeof value;
  }
}
