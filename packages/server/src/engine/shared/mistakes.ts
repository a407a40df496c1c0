import { utf8Length } from "@parley/a2a/internal/base/index";
import { jsonTextOf } from "@parley/a2a/internal/base/json-text";
import { jsonAdvice, notJson } from "@parley/a2a/internal/base/json";
import { A2AError, type NewRecord, type TaskState } from "@parley/a2a/internal/model/index";
import type { AgentEvent } from "@parley/a2a/internal/protocol/index";
import { updateJson } from "../../store/json.ts";
import { isObject } from "@parley/a2a/internal/model/schema";

/** An error in an agent's event. The text is for the log. The client gets a general sentence. */
export function agentMistake(text: string): A2AError {
  return new A2AError("InvalidAgentResponse", text);
}

export function isMistake(error: unknown): error is A2AError {
  return error instanceof A2AError && error.code === "InvalidAgentResponse";
}

/** Adds the event to the text of a mistake, so that its author can find the line of code. Returns other errors unchanged. */
export function mistakeOf(event: AgentEvent, place: string, error: unknown): unknown {
  const mistake = asMistake(error);
  return isMistake(mistake) ? agentMistake(`${nameOf(event)}, ${place}: ${mistake.message}`) : error;
}

/**
 * Serializes an agent's value. `name`: the method that received it.
 *
 * @param own - The part of the value that comes from the agent and is not checked yet. Default: all of it.
 */
export function jsonOf(value: unknown, name: string, own: unknown = value): string {
  try {
    checkJson(own, "value");
    return jsonTextOf(value);
  } catch (error) {
    const mistake = asMistake(error);
    throw isMistake(mistake) ? agentMistake(`${name}: ${mistake.message}`) : error;
  }
}

/** @throws A2AError `InvalidAgentResponse` with the path of a value that is not JSON. `undefined` is allowed. */
function checkJson(value: unknown, path: string): void {
  const fault = value === undefined ? undefined : notJson(value);
  if (fault !== undefined) throw agentMistake(`it is not JSON: ${path}${fault}; ${jsonAdvice("use")}`);
}

/**
 * Checks the free JSON of an agent's event: metadata and data.
 *
 * @throws A2AError `InvalidAgentResponse` with the path of the invalid value.
 */
export function checkFreeJson(event: unknown): void {
  // JavaScript agents can yield anything. A value that is not an object is rejected when it becomes a record.
  if (!isObject(event)) return;
  checkJson(event["metadata"], "metadata");
  checkContent(event["artifact"], "artifact");
  checkContent(event["message"], "message");
}

/** Like `checkFreeJson`, for a direct reply before extensions add data. */
export function checkReply(event: AgentEvent): void {
  try {
    checkFreeJson(event);
  } catch (error) {
    throw isMistake(error) ? agentMistake(`turn.reply(): ${error.message}`) : error;
  }
}

function checkContent(content: unknown, path: string): void {
  if (!isObject(content)) return;
  const { metadata, parts } = content;
  checkJson(metadata, `${path}.metadata`);
  if (!Array.isArray(parts)) return;
  for (let at = 0; at < parts.length; at += 1) {
    const part: unknown = parts[at];
    if (!isObject(part)) continue;
    if (part["data"] !== undefined) checkJson(part["data"], `${path}.parts[${at}].data`);
    if (part["metadata"] !== undefined) checkJson(part["metadata"], `${path}.parts[${at}].metadata`);
  }
}

/** Adds context to the error of `jsonTextOf` for values that nest too deeply. */
function asMistake(error: unknown): unknown {
  if (!(error instanceof TypeError || error instanceof RangeError)) return error;
  return agentMistake(`it is not JSON: ${error.message}; ${jsonAdvice("use")}`);
}

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

/** The name of an event in errors, which is the call that made the event. */
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
      return `The yielded value, ${describe(event)}`;
  }
}

function nameOfRecord({ kind, json, state }: NewRecord): string {
  if (kind !== "artifactUpdate") return state === undefined ? "A record" : `A status ${describe(state)}`;
  const { artifact } = updateJson.read(json);
  return `An update of artifact ${describe(artifact.artifactId)}`;
}

function describe(value: unknown): string {
  try {
    return (JSON.stringify(value) ?? String(value)).slice(0, 200);
  } catch {
    return typeof value;
  }
}
