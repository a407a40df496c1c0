import { utf8Length } from "@parley/a2a/internal/base/index";
import { jsonTextOf } from "@parley/a2a/internal/base/json-text";
import {
  artifactSchema,
  check,
  isHistory,
  isTaskState,
  isTextPart,
  messageSchema,
  type Artifact,
  type JsonObject,
  type Message,
  type NewRecord,
  type Part,
  type Schema,
  type TaskState,
} from "@parley/a2a/internal/model/index";
import type {
  AgentEvent,
  AgentMessage,
  ArtifactEvent,
  Principal,
  StatusEvent,
} from "@parley/a2a/internal/protocol/index";
import type { Store, TaskKey } from "../../store/index.ts";
import { agentMistake } from "../shared/mistakes.ts";
import { storedJson, type StoredJson } from "@parley/a2a/internal/base/json";
import { updateJson } from "../../store/json.ts";

/** The task, the turn and the call that a record belongs to. */
export interface Origin {
  readonly taskId: string;
  readonly contextId: string;
  readonly turn: number;
  readonly attempt: number;
  readonly extensions: readonly string[];
  readonly trace: string | undefined;
}

/** The data that a turn needs from the call of its message. Stored with the message, so that a lost run can be resumed. */
export interface StoredCall {
  /** The result of `storedPrincipal`. */
  readonly principal: Principal;
  readonly version: string;
  readonly extensions: readonly string[];
  readonly acceptedOutputModes: readonly string[];
  readonly metadata?: JsonObject | undefined;
  readonly trace?: string;
  /** Headers of the request that the agent declares with `store`. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Id of the authorization request that the message answers. Such a message does not start a turn. */
  readonly answers?: string;
}

export const callJson: StoredJson<StoredCall> = storedJson();

/**
 * The part of a caller that is stored: the identity that owns its tasks, its scopes and schemes, and the claims that the agent
 * declares (`keepClaims`). Other claims are never stored, and only a turn that starts with the caller's request has them.
 */
export function storedPrincipal(
  { subject, organization, scopes, schemes, claims }: Principal,
  keepClaims: readonly string[],
): Principal {
  const kept = keepClaims.filter((name) => claims?.[name] !== undefined).map((name) => [name, claims?.[name]] as const);
  return {
    subject,
    ...(organization !== undefined && { organization }),
    ...(scopes !== undefined && { scopes }),
    ...(schemes !== undefined && { schemes }),
    ...(kept.length > 0 && { claims: Object.fromEntries(kept) }),
  };
}

type Common = Pick<NewRecord, "time" | "turn" | "attempt" | "extensions" | "trace">;

function common(origin: Origin, time: number): Common {
  return {
    time,
    turn: origin.turn,
    attempt: origin.attempt,
    ...(origin.extensions.length > 0 && { extensions: origin.extensions }),
    ...(origin.trace !== undefined && { trace: origin.trace }),
  };
}

/** The first record of a task: the new task, with the message that created it. */
export function taskRecord(
  origin: Origin,
  state: TaskState,
  message: Message,
  call: StoredCall,
  time: number,
): NewRecord {
  const { taskId, contextId } = origin;
  const status = { state, timestamp: new Date(time).toISOString() };
  return {
    kind: "task",
    json: JSON.stringify({ id: taskId, contextId, status, history: [Object.assign({}, message, { taskId })] }),
    actor: "user",
    state,
    call: callJson.write(call),
    ...common(origin, time),
  };
}

export function messageRecord(origin: Origin, message: Message, call: StoredCall, time: number): NewRecord {
  return {
    kind: "message",
    json: JSON.stringify(message),
    actor: "user",
    call: callJson.write(call),
    ...common(origin, time),
  };
}

export interface MessageIds {
  readonly messageId: string;
  readonly contextId: string;
  readonly taskId?: string;
}

/** Adds ids and the role to a message of the agent. Throws `InvalidAgentResponse` if the message is invalid. */
export function agentMessage(message: AgentMessage, ids: MessageIds): Message {
  const { messageId = ids.messageId } = message;
  return checked(messageSchema, Object.assign({}, message, ids, { messageId, role: "ROLE_AGENT" }), "message");
}

export interface StatusInit {
  readonly state: TaskState;
  readonly message?: AgentMessage;
  readonly metadata?: JsonObject;
  readonly keep?: boolean;
}

export function statusRecord(
  origin: Origin,
  init: StatusInit,
  actor: "agent" | "system" | "delegate",
  messageId: string,
  time: number,
): NewRecord {
  const { taskId, contextId } = origin;
  const { state, metadata } = init;
  if (!isTaskState(state))
    throw agentMistake(
      `status.state ${JSON.stringify(state)} is not a task state: use the builders of the turn, or a TaskState`,
    );
  const message = init.message && agentMessage(init.message, { messageId, contextId, taskId });
  const status = { state, ...(message && { message }), timestamp: new Date(time).toISOString() };
  return {
    kind: "statusUpdate",
    json: jsonTextOf({ taskId, contextId, status, ...(metadata && { metadata }) }),
    actor,
    state,
    ...(message && isHistory({ ...init, kind: "statusUpdate" }) && { keep: true }),
    ...common(origin, time),
  };
}

export function artifactRecord(
  origin: Origin,
  event: ArtifactEvent,
  actor: "agent" | "delegate",
  time: number,
): NewRecord {
  const { taskId, contextId } = origin;
  const artifact: Artifact = checked(artifactSchema, event.artifact, "artifact");
  const json = jsonTextOf({
    taskId,
    contextId,
    artifact,
    ...(event.append === true && { append: true }),
    ...(event.lastChunk === true && { lastChunk: true }),
    ...(event.metadata && { metadata: event.metadata }),
  });
  return { kind: "artifactUpdate", json, actor, ...common(origin, time) };
}

/** Checks a value from an agent against the protocol, and copies the value without unknown members. */
function checked<T>(schema: Schema<T>, value: unknown, what: string): T {
  const result = check(schema, value, "copy");
  if (result.ok) return result.value;
  const list = result.violations.map(
    ({ field, description }) => `${field === "" ? what : `${what}.${field}`} ${description}`,
  );
  throw agentMistake(list.join("; "));
}

/* The text of artifacts in the message of the final status, for front ends that show no artifacts (`mirrorArtifactText`). */

/** Maximum bytes of the text. A longer text would double the stored bytes, and few front ends could show it. */
const maxBytes = 256 << 10;

const suffix = "-mirror";

/** Whether a message repeats the text of its task's artifacts. The conversation then contains the text only once. */
export function isMirror({ messageId, taskId, role }: Partial<Message>): boolean {
  return (
    role === "ROLE_AGENT" &&
    taskId !== undefined &&
    messageId?.startsWith(taskId) === true &&
    messageId.endsWith(suffix)
  );
}

/** Whether an event ends the task and has no message. */
export function endsSilently(event: AgentEvent | undefined): event is StatusEvent {
  return event?.kind === "status" && event.state === "TASK_STATE_COMPLETED" && event.message === undefined;
}

/**
 * A message with the text of a turn's artifacts, read from the log, so that the message is the same after a crash. `undefined`: there is
 * no text, or too much text.
 *
 * @param after - `seq` of the message of the turn.
 */
export async function mirrorOf(
  store: Pick<Store, "read">,
  task: TaskKey,
  { turn, after }: { readonly turn: number; readonly after: number },
): Promise<AgentMessage | undefined> {
  const texts = new Map<string, string>();
  for (let from = after; ;) {
    const page = await store.read(task, task.taskId, { after: from, limit: 256, kinds: ["artifactUpdate"] });
    const last = page?.records.at(-1);
    if (page === undefined || last === undefined) break;
    for (const { json } of page.records) {
      const { artifact, append } = updateJson.read(json);
      const before = append === true ? (texts.get(artifact.artifactId) ?? "") : "";
      texts.set(artifact.artifactId, before + textOf(artifact.parts));
    }
    if (utf8Length(joined(texts)) > maxBytes) return undefined;
    from = last.seq;
  }
  const text = joined(texts);
  return text === "" ? undefined : { messageId: `${task.taskId}-${turn}${suffix}`, parts: [{ text }] };
}

function textOf(parts: readonly Part[]): string {
  return parts
    .filter(isTextPart)
    .map(({ text }) => text)
    .join("");
}

function joined(texts: ReadonlyMap<string, string>): string {
  return [...texts.values()].filter((text) => text !== "").join("\n\n");
}
