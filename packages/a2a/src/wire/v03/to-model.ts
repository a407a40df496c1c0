import type {
  Artifact,
  JsonObject,
  Message,
  Part,
  SendMessageRequest,
  StreamResponse,
  Task,
  TaskPushNotificationConfig,
  TaskState,
  TaskStatus,
} from "../../model/index.ts";
import type {
  Artifact03,
  DataPart03,
  Event03,
  Message03,
  MessageSendParams03,
  Part03,
  PushNotificationConfig03,
  Task03,
  TaskPushNotificationConfig03,
  TaskState03,
  TaskStatus03,
} from "./types.ts";

/** Checked JSON of 0.3 as the model has it. */

/**
 * In the metadata of a data part: its `data` is `{ value }`, since 0.3 carries objects alone (§6.5.3). The official
 * Python SDK uses the same name.
 */
export const wrappedData = "data_part_compat";

const states: Readonly<Record<TaskState03, TaskState>> = {
  submitted: "TASK_STATE_SUBMITTED",
  working: "TASK_STATE_WORKING",
  "input-required": "TASK_STATE_INPUT_REQUIRED",
  completed: "TASK_STATE_COMPLETED",
  canceled: "TASK_STATE_CANCELED",
  cancelled: "TASK_STATE_CANCELED",
  failed: "TASK_STATE_FAILED",
  rejected: "TASK_STATE_REJECTED",
  "auth-required": "TASK_STATE_AUTH_REQUIRED",
  // 1.0 has no such state. Whoever waits for a task that may still go on must not take it for over.
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
  return { state: states[state], ...(message !== undefined && { message: toMessage(message) }), ...rest };
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
  // 1.0 has one scheme (§4.3.2), of 0.3's list the first.
  const [scheme] = authentication?.schemes ?? [];
  if (scheme === undefined) return rest;
  const credentials = authentication?.credentials;
  return { ...rest, authentication: { scheme, ...(credentials !== undefined && { credentials }) } };
}

export function toPushConfig(config: TaskPushNotificationConfig03): TaskPushNotificationConfig {
  return { taskId: config.taskId, ...toPushFields(config.pushNotificationConfig) };
}

/** `blocking` that is not set waits, as peers over JSON-RPC have it: only ProtoJSON cannot tell it from `false`. */
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
