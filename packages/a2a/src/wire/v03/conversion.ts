import {
  isTerminal,
  type Artifact,
  type JsonObject,
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
import type {
  Artifact03,
  DataPart03,
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

/** Converts checked JSON of 0.3, as JSON-RPC carries it, to the model, and the model to that JSON. */

/**
 * Metadata of a data part which says that its `data` is `{ value }`, because in 0.3 data is an object (§6.5.3). The official
 * Python SDK uses the same name.
 */
const wrappedData = "data_part_compat";

const modelStates: Readonly<Record<TaskState03, TaskState>> = {
  submitted: "TASK_STATE_SUBMITTED",
  working: "TASK_STATE_WORKING",
  "input-required": "TASK_STATE_INPUT_REQUIRED",
  completed: "TASK_STATE_COMPLETED",
  canceled: "TASK_STATE_CANCELED",
  cancelled: "TASK_STATE_CANCELED",
  failed: "TASK_STATE_FAILED",
  rejected: "TASK_STATE_REJECTED",
  "auth-required": "TASK_STATE_AUTH_REQUIRED",
  // 1.0 has no such state. The task may go on, so nobody who waits for it must take it for finished.
  unknown: "TASK_STATE_WORKING",
};

function toPart(part: Part03): Part {
  const { metadata } = part;
  switch (part.kind) {
    case "text":
      return { text: part.text, ...(metadata !== undefined && { metadata }) };
    case "data":
      return toDataPart(part);
    case "file": {
      const { bytes, uri, fileWithBytes, fileWithUri, name, mimeType } = part.file;
      const raw = bytes ?? fileWithBytes;
      const more = {
        ...(name !== undefined && { filename: name }),
        ...(mimeType !== undefined && { mediaType: mimeType }),
        ...(metadata !== undefined && { metadata }),
      };
      return raw === undefined ? { url: uri ?? fileWithUri ?? "", ...more } : { raw, ...more };
    }
  }
}

function toDataPart({ data, metadata }: DataPart03): Part {
  const value = data["value"];
  if (metadata?.[wrappedData] !== true || value === undefined) {
    return { data, ...(metadata !== undefined && { metadata }) };
  }
  const { [wrappedData]: _, ...rest } = metadata;
  const others: JsonObject = rest;
  return { data: value, ...(Object.keys(others).length > 0 && { metadata: others }) };
}

function toMessage(message: Message03): Message {
  const { kind: _, role, parts, ...rest } = message;
  return { role: role === "user" ? "ROLE_USER" : "ROLE_AGENT", parts: parts.map(toPart), ...rest };
}

function toArtifact({ parts, ...rest }: Artifact03): Artifact {
  return { parts: parts.map(toPart), ...rest };
}

function toStatus({ state, message, ...rest }: TaskStatus03): TaskStatus {
  return { state: modelStates[state], ...(message !== undefined && { message: toMessage(message) }), ...rest };
}

export function toTask({ kind: _, status, history, artifacts, ...rest }: Task03): Task {
  return {
    status: toStatus(status),
    ...rest,
    ...(artifacts !== undefined && { artifacts: artifacts.map(toArtifact) }),
    ...(history !== undefined && { history: history.map(toMessage) }),
  };
}

export function toEvent(event: Event03): StreamResponse {
  switch (event.kind) {
    case "task":
      return { task: toTask(event) };
    case "message":
      return { message: toMessage(event) };
    case "status-update": {
      const { kind: _, final: __, status, ...rest } = event;
      return { statusUpdate: { status: toStatus(status), ...rest } };
    }
    case "artifact-update": {
      const { kind: _, artifact, ...rest } = event;
      return { artifactUpdate: { artifact: toArtifact(artifact), ...rest } };
    }
  }
}

function toPushFields({
  authentication,
  ...rest
}: PushNotificationConfig03): Omit<TaskPushNotificationConfig, "taskId"> {
  // 1.0 has one scheme (§4.3.2): the first one of the list.
  const [scheme] = authentication?.schemes ?? [];
  if (scheme === undefined) return rest;
  const credentials = authentication?.credentials;
  return { ...rest, authentication: { scheme, ...(credentials !== undefined && { credentials }) } };
}

export function toPushConfig(config: TaskPushNotificationConfig03): TaskPushNotificationConfig {
  return { taskId: config.taskId, ...toPushFields(config.pushNotificationConfig) };
}

/** Without `blocking` the call waits, as other implementations do over JSON-RPC. Only ProtoJSON cannot tell it from `false`. */
export function toSendRequest({ message, configuration, metadata }: MessageSendParams03): SendMessageRequest {
  const { blocking, pushNotificationConfig, ...rest } = configuration ?? {};
  return {
    message: toMessage(message),
    ...(configuration !== undefined && {
      configuration: {
        ...rest,
        ...(pushNotificationConfig !== undefined && {
          taskPushNotificationConfig: toPushFields(pushNotificationConfig),
        }),
        ...(blocking === false && { returnImmediately: true }),
      },
    }),
    ...(metadata !== undefined && { metadata }),
  };
}

const wireStates: Readonly<Record<TaskState, TaskState03>> = {
  TASK_STATE_SUBMITTED: "submitted",
  TASK_STATE_WORKING: "working",
  TASK_STATE_INPUT_REQUIRED: "input-required",
  TASK_STATE_COMPLETED: "completed",
  TASK_STATE_CANCELED: "canceled",
  TASK_STATE_FAILED: "failed",
  TASK_STATE_REJECTED: "rejected",
  TASK_STATE_AUTH_REQUIRED: "auth-required",
};

/** 0.3 has no file name and no media type for text and data (§6.5). */
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
  return { state: wireStates[state], ...(message !== undefined && { message: fromMessage(message) }), ...rest };
}

export function fromTask({ id, contextId, status, artifacts, history, ...rest }: Task): Task03 & {
  readonly kind: "task";
} {
  return {
    kind: "task",
    id,
    // It is required (§6.1).
    contextId: contextId ?? "",
    status: fromStatus(status),
    ...(history !== undefined && { history: history.map(fromMessage) }),
    ...(artifacts !== undefined && { artifacts: artifacts.map(fromArtifact) }),
    ...rest,
  };
}

/**
 * Whether an update to this state is `final`: on this stream nothing follows without another message of the caller (0.3 §7.2.2,
 * and its guide on streaming). At auth-required the credential may arrive in another way.
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
 * Always has `blocking`, because servers disagree on what a configuration without it means. 0.2.5 requires
 * `acceptedOutputModes`. An empty list accepts everything.
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
