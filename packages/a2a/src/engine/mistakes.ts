import { A2AError, type NewRecord, type TaskArtifactUpdateEvent, type TaskState } from "../model/index.ts";
import type { AgentEvent } from "../protocol/index.ts";

/** What an agent did wrong. The text is for the operator's log; the client reads a sentence that says nothing of the inside (D12). */
export function agentMistake(text: string): A2AError {
  return new A2AError("InvalidAgentResponse", text);
}

export function isMistake(error: unknown): error is A2AError {
  return error instanceof A2AError && error.code === "InvalidAgentResponse";
}

/** Says of which event a mistake is: the developer has to find the line. Anything else stays as it is. */
export function mistakeOf(event: AgentEvent, place: string, error: unknown): unknown {
  return isMistake(error) ? agentMistake(`${nameOf(event)}, ${place}: ${error.message}`) : error;
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
