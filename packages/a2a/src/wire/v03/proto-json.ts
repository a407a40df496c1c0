import type {
  Artifact03,
  Event03,
  Message03,
  MessageSendParams03,
  Part03,
  PushNotificationConfig03,
  Task03,
  TaskState03,
  TaskStatus03,
} from "./types.ts";
import type {
  ProtoArtifact,
  ProtoMessage,
  ProtoPart,
  ProtoSendRequest,
  ProtoState,
  ProtoStatus,
  ProtoStreamResponse,
  ProtoTask,
} from "./proto-schemas.ts";

/** Converts the JSON of JSON-RPC to ProtoJSON, and back. */

const toProtoState: Readonly<Record<TaskState03, ProtoState>> = {
  submitted: "TASK_STATE_SUBMITTED",
  working: "TASK_STATE_WORKING",
  "input-required": "TASK_STATE_INPUT_REQUIRED",
  completed: "TASK_STATE_COMPLETED",
  canceled: "TASK_STATE_CANCELLED",
  cancelled: "TASK_STATE_CANCELLED",
  failed: "TASK_STATE_FAILED",
  rejected: "TASK_STATE_REJECTED",
  "auth-required": "TASK_STATE_AUTH_REQUIRED",
  unknown: "TASK_STATE_UNSPECIFIED",
};

const ofProtoState: Readonly<Record<ProtoState, TaskState03>> = {
  TASK_STATE_SUBMITTED: "submitted",
  TASK_STATE_WORKING: "working",
  TASK_STATE_INPUT_REQUIRED: "input-required",
  TASK_STATE_COMPLETED: "completed",
  TASK_STATE_CANCELLED: "canceled",
  TASK_STATE_CANCELED: "canceled",
  TASK_STATE_FAILED: "failed",
  TASK_STATE_REJECTED: "rejected",
  TASK_STATE_AUTH_REQUIRED: "auth-required",
  TASK_STATE_UNSPECIFIED: "unknown",
};

function toProtoPart(part: Part03): ProtoPart {
  const metadata = part.metadata !== undefined && { metadata: part.metadata };
  if (part.kind === "text") return { text: part.text, ...metadata };
  if (part.kind === "data") return { data: { data: part.data }, ...metadata };
  const { bytes, uri, name, mimeType } = part.file;
  const file = {
    ...(bytes === undefined ? { fileWithUri: uri ?? "" } : { fileWithBytes: bytes }),
    ...(mimeType !== undefined && { mimeType }),
    ...(name !== undefined && { name }),
  };
  return { file, ...metadata };
}

function ofProtoPart({ text, file, data, metadata }: ProtoPart): Part03 {
  const more = metadata !== undefined && { metadata };
  if (file !== undefined) return { kind: "file", file, ...more };
  if (data !== undefined) return { kind: "data", data: data.data, ...more };
  return { kind: "text", text: text ?? "", ...more };
}

/** The proto of 0.3 has no `referenceTaskIds`. */
function toProtoMessage({ kind: _, referenceTaskIds: __, role, parts, ...rest }: Message03): ProtoMessage {
  return { role: role === "user" ? "ROLE_USER" : "ROLE_AGENT", content: parts.map(toProtoPart), ...rest };
}

function ofProtoMessage({ role, content, ...rest }: ProtoMessage): Message03 & { readonly kind: "message" } {
  return { kind: "message", role: role === "ROLE_USER" ? "user" : "agent", parts: content.map(ofProtoPart), ...rest };
}

function toProtoArtifact({ parts, ...rest }: Artifact03): ProtoArtifact {
  return { parts: parts.map(toProtoPart), ...rest };
}

function ofProtoArtifact({ parts, ...rest }: ProtoArtifact): Artifact03 {
  return { parts: parts.map(ofProtoPart), ...rest };
}

function toProtoStatus({ state, message, ...rest }: TaskStatus03): ProtoStatus {
  return { state: toProtoState[state], ...(message !== undefined && { message: toProtoMessage(message) }), ...rest };
}

function ofProtoStatus({ state, message, ...rest }: ProtoStatus): TaskStatus03 {
  return { state: ofProtoState[state], ...(message !== undefined && { message: ofProtoMessage(message) }), ...rest };
}

export function toProtoTask({ kind: _, status, history, artifacts, ...rest }: Task03): ProtoTask {
  return {
    status: toProtoStatus(status),
    ...(artifacts !== undefined && { artifacts: artifacts.map(toProtoArtifact) }),
    ...(history !== undefined && { history: history.map(toProtoMessage) }),
    ...rest,
  };
}

export function ofProtoTask({ status, history, artifacts, ...rest }: ProtoTask): Task03 & { readonly kind: "task" } {
  return {
    kind: "task",
    status: ofProtoStatus(status),
    ...(history !== undefined && { history: history.map(ofProtoMessage) }),
    ...(artifacts !== undefined && { artifacts: artifacts.map(ofProtoArtifact) }),
    ...rest,
  };
}

export function toProtoEvent(event: Event03): ProtoStreamResponse {
  switch (event.kind) {
    case "task":
      return { task: toProtoTask(event) };
    case "message":
      return { message: toProtoMessage(event) };
    case "status-update": {
      const { kind: _, status, ...rest } = event;
      return { statusUpdate: { status: toProtoStatus(status), ...rest } };
    }
    case "artifact-update": {
      const { kind: _, artifact, ...rest } = event;
      return { artifactUpdate: { artifact: toProtoArtifact(artifact), ...rest } };
    }
  }
}

/** The event was checked, so it has exactly one member. */
export function ofProtoEvent({ task, message, statusUpdate, artifactUpdate }: ProtoStreamResponse): Event03 {
  if (task !== undefined) return ofProtoTask(task);
  if (message !== undefined) return ofProtoMessage(message);
  if (statusUpdate !== undefined) {
    const { status, ...rest } = statusUpdate;
    return { kind: "status-update", status: ofProtoStatus(status), ...rest };
  }
  const { artifact, ...rest } = artifactUpdate as NonNullable<typeof artifactUpdate>;
  return { kind: "artifact-update", artifact: ofProtoArtifact(artifact), ...rest };
}

export function toProtoSend({ message, configuration, metadata }: MessageSendParams03): ProtoSendRequest {
  const { pushNotificationConfig, ...rest } = configuration ?? {};
  return {
    message: toProtoMessage(message),
    ...(configuration !== undefined && {
      configuration: {
        ...(pushNotificationConfig !== undefined && { pushNotification: pushNotificationConfig }),
        ...rest,
      },
    }),
    ...(metadata !== undefined && { metadata }),
  };
}

/** In proto3 an absent field is `false` or `0`: the call does not wait, and the whole history is sent (0.3 §7.1). */
export function ofProtoSend({ message, configuration = {}, metadata }: ProtoSendRequest): MessageSendParams03 {
  const { pushNotification, historyLength, blocking, ...rest } = configuration;
  return {
    message: ofProtoMessage(message),
    configuration: {
      blocking: blocking === true,
      ...(historyLength !== undefined && historyLength !== 0 && { historyLength }),
      ...(pushNotification !== undefined && { pushNotificationConfig: pushNotification }),
      ...rest,
    },
    ...(metadata !== undefined && { metadata }),
  };
}

const pushName = /^tasks\/([^/]+)\/pushNotificationConfigs(?:\/([^/]*))?$/;

/** The config of a webhook with its resource name, `tasks/{task}/pushNotificationConfigs/{id}`. */
export function toProtoPush(
  taskId: string,
  config: PushNotificationConfig03,
): {
  readonly name: string;
  readonly pushNotificationConfig: PushNotificationConfig03;
} {
  return { name: pushNameOf(taskId, config.id ?? ""), pushNotificationConfig: config };
}

export function pushNameOf(taskId: string, id: string): string {
  return `tasks/${taskId}/pushNotificationConfigs/${id}`;
}

/** The ids in the resource name of a task or of a config. */
export function idsIn(name: string): { readonly taskId: string; readonly id?: string } | undefined {
  const [, taskId, id] = pushName.exec(name) ?? /^tasks\/([^/]+)$/.exec(name) ?? [];
  if (taskId === undefined) return undefined;
  return { taskId, ...(id !== undefined && id !== "" && { id }) };
}
