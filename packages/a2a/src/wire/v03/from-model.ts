import {
  isTerminal,
  type Artifact,
  type Message,
  type Part,
  type SendMessageConfiguration,
  type SendMessageRequest,
  type StreamResponse,
  type Task,
  type TaskPushNotificationConfig,
  type TaskState,
  type TaskStatus,
} from "../../model/index.ts";
import { isObject } from "../../model/schema.ts";
import { wrappedData } from "./to-model.ts";
import type {
  Artifact03,
  Event03,
  Message03,
  MessageSendConfiguration03,
  MessageSendParams03,
  Part03,
  PushNotificationConfig03,
  Task03,
  TaskPushNotificationConfig03,
  TaskState03,
  TaskStatus03,
} from "./types.ts";

/** The model as the JSON of 0.3 on JSON-RPC. Order of members is that of the text. */

const states: Readonly<Record<TaskState, TaskState03>> = {
  TASK_STATE_SUBMITTED: "submitted",
  TASK_STATE_WORKING: "working",
  TASK_STATE_INPUT_REQUIRED: "input-required",
  TASK_STATE_COMPLETED: "completed",
  TASK_STATE_CANCELED: "canceled",
  TASK_STATE_FAILED: "failed",
  TASK_STATE_REJECTED: "rejected",
  TASK_STATE_AUTH_REQUIRED: "auth-required",
};

/** The name and the media type of a text or of data have no place in 0.3 (§6.5). */
function fromPart({ text, raw, url, data, filename, mediaType, metadata }: Part): Part03 {
  const meta = metadata !== undefined && { metadata };
  if (text !== undefined) return { kind: "text", text, ...meta };
  if (data !== undefined) {
    if (isObject(data)) return { kind: "data", data, ...meta };
    return { kind: "data", data: { value: data }, metadata: { [wrappedData]: true, ...metadata } };
  }
  return {
    kind: "file",
    file: {
      ...(raw !== undefined ? { bytes: raw } : { uri: url ?? "" }),
      ...(filename !== undefined && { name: filename }),
      ...(mediaType !== undefined && { mimeType: mediaType }),
    },
    ...meta,
  };
}

function fromMessage({ role, parts, ...rest }: Message): Message03 & { readonly kind: "message" } {
  return { kind: "message", role: role === "ROLE_USER" ? "user" : "agent", parts: parts.map(fromPart), ...rest };
}

function fromArtifact({ parts, ...rest }: Artifact): Artifact03 {
  return { parts: parts.map(fromPart), ...rest };
}

function fromStatus({ state, message, ...rest }: TaskStatus): TaskStatus03 {
  return { state: states[state], ...(message !== undefined && { message: fromMessage(message) }), ...rest };
}

export function fromTask({ id, contextId, status, artifacts, history, ...rest }: Task): Task03 & {
  readonly kind: "task";
} {
  return {
    kind: "task",
    id,
    // Required there (§6.1).
    contextId: contextId ?? "",
    status: fromStatus(status),
    ...(history !== undefined && { history: history.map(fromMessage) }),
    ...(artifacts !== undefined && { artifacts: artifacts.map(fromArtifact) }),
    ...rest,
  };
}

/**
 * Whether `final` stands on an update to this state: nothing follows on this stream but by a message of the caller's
 * (0.3 §7.2.2, its guide on streaming). At auth-required the credential may come by another way.
 */
export function isFinal(state: TaskState | undefined): boolean {
  return state !== undefined && (isTerminal(state) || state === "TASK_STATE_INPUT_REQUIRED");
}

export function fromEvent({ task, message, statusUpdate, artifactUpdate }: StreamResponse): Event03 {
  if (task !== undefined) return fromTask(task);
  if (message !== undefined) return fromMessage(message);
  if (statusUpdate !== undefined) {
    const { taskId, contextId, status, ...rest } = statusUpdate;
    const final = isFinal(status.state);
    return { kind: "status-update", taskId, contextId, status: fromStatus(status), final, ...rest };
  }
  const { taskId, contextId, artifact, ...rest } = artifactUpdate;
  return { kind: "artifact-update", taskId, contextId, artifact: fromArtifact(artifact), ...rest };
}

function fromPushFields({ id, url, token, authentication }: TaskPushNotificationConfig): PushNotificationConfig03 {
  return {
    ...(id !== undefined && { id }),
    url,
    ...(token !== undefined && { token }),
    ...(authentication !== undefined && {
      authentication: {
        schemes: [authentication.scheme],
        ...(authentication.credentials !== undefined && { credentials: authentication.credentials }),
      },
    }),
  };
}

export function fromPushConfig(config: TaskPushNotificationConfig): TaskPushNotificationConfig03 {
  return { taskId: config.taskId ?? "", pushNotificationConfig: fromPushFields(config) };
}

export function fromSendRequest({ message, configuration, metadata }: SendMessageRequest): MessageSendParams03 {
  return {
    message: fromMessage(message),
    ...(configuration !== undefined && { configuration: fromConfiguration(configuration) }),
    ...(metadata !== undefined && { metadata }),
  };
}

/**
 * Says `blocking` in so many words: servers disagree on what its absence means beside a configuration. 0.2.5 requires
 * `acceptedOutputModes`; an empty list asks for nothing in particular.
 */
function fromConfiguration({
  acceptedOutputModes = [],
  historyLength,
  taskPushNotificationConfig,
  returnImmediately,
}: SendMessageConfiguration): MessageSendConfiguration03 {
  return {
    acceptedOutputModes,
    ...(historyLength !== undefined && { historyLength }),
    ...(taskPushNotificationConfig !== undefined && {
      pushNotificationConfig: fromPushFields(taskPushNotificationConfig),
    }),
    blocking: returnImmediately !== true,
  };
}
