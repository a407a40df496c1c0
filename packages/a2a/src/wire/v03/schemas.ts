import {
  base64,
  blank,
  boolean,
  filled,
  id,
  integer,
  isObject,
  list,
  none,
  nothing,
  object,
  oneName,
  optional,
  optionalId,
  required,
  string,
  strings,
  struct,
  timestamp,
  type Schema,
} from "../../model/schema.ts";
import type {
  Artifact03,
  DataPart03,
  Event03,
  File03,
  FilePart03,
  Message03,
  MessageSendConfiguration03,
  MessageSendParams03,
  Part03,
  PushConfigDeleteParams03,
  PushConfigParams03,
  PushNotificationConfig03,
  Role03,
  Task03,
  TaskArtifactUpdateEvent03,
  TaskIdParams03,
  TaskPushNotificationConfig03,
  TaskQueryParams03,
  TaskState03,
  TaskStatus03,
  TaskStatusUpdateEvent03,
  TextPart03,
} from "./types.ts";

/** Schemas of A2A 0.3 over JSON-RPC (0.3 §6, §7). So errors name the fields that the sender wrote, not those of the model. */

const ids: Schema<readonly string[]> = list(id);
const historyLength: Schema<number> = integer(0);

/**
 * A union whose members differ in `kind`. Some servers leave `kind` out of their answers. Then the first member of `tells` that
 * is present decides.
 */
function byKind<T extends { readonly kind: string }>(
  schemas: { readonly [Kind in T["kind"]]: Schema<Extract<T, { readonly kind: Kind }>> },
  tells: readonly (readonly [member: string, kind: T["kind"]])[],
): Schema<T> {
  const kinds = new Map<unknown, Schema<unknown>>(Object.entries(schemas));
  const wrong = object<{ readonly kind: string }>({ kind: required(oneName([...kinds.keys()] as string[])) });
  return (value, run) => {
    if (typeof value !== "object" || value === null || Array.isArray(value)) return wrong(value, run);
    const fields = value as Record<string, unknown>;
    if (fields["kind"] === undefined && run.mode === "answer") {
      fields["kind"] = tells.find(([member]) => fields[member] !== undefined)?.[1];
    }
    return (kinds.get(fields["kind"]) ?? wrong)(value, run);
  };
}

const file: Schema<File03> = object<File03>(
  {
    bytes: optional(base64),
    uri: optional(filled),
    fileWithBytes: optional(base64),
    fileWithUri: optional(filled),
    name: optional(blank),
    mimeType: optional(blank),
  },
  { members: ["bytes", "uri", "fileWithBytes", "fileWithUri"] },
);

const part: Schema<Part03> = byKind<Part03>(
  {
    text: object<TextPart03>({
      kind: required(oneName(["text"])),
      text: required(string, nothing),
      metadata: optional(struct),
    }),
    file: object<FilePart03>({
      kind: required(oneName(["file"])),
      file: required(file),
      metadata: optional(struct),
    }),
    data: object<DataPart03>({
      kind: required(oneName(["data"])),
      data: required(struct),
      metadata: optional(struct),
    }),
  },
  [
    ["text", "text"],
    ["file", "file"],
    ["data", "data"],
  ],
);

const parts: Schema<readonly Part03[]> = list(part, "must hold at least one part");

const message03: Schema<Message03> = object<Message03>({
  kind: optional(oneName(["message"])),
  messageId: required(id, nothing),
  contextId: optional(optionalId),
  taskId: optional(optionalId),
  role: required(oneName<Role03>(["user", "agent"])),
  parts: required(parts, none),
  metadata: optional(struct),
  extensions: optional(strings),
  referenceTaskIds: optional(ids),
});

const artifact: Schema<Artifact03> = object<Artifact03>({
  artifactId: required(id, nothing),
  name: optional(blank),
  description: optional(blank),
  parts: required(parts, none),
  metadata: optional(struct),
  extensions: optional(strings),
});

const states: readonly TaskState03[] = [
  "submitted",
  "working",
  "input-required",
  "completed",
  "canceled",
  "failed",
  "rejected",
  "auth-required",
  "unknown",
  "cancelled",
];

const status: Schema<TaskStatus03> = object<TaskStatus03>({
  state: required(oneName(states)),
  message: optional(message03),
  timestamp: optional(timestamp),
});

export const task03: Schema<Task03> = object<Task03>({
  kind: optional(oneName(["task"])),
  id: required(id),
  contextId: optional(optionalId),
  status: required(status),
  history: optional(list(message03)),
  artifacts: optional(list(artifact)),
  metadata: optional(struct),
});

const statusUpdate: Schema<TaskStatusUpdateEvent03> = object<TaskStatusUpdateEvent03>({
  kind: optional(oneName(["status-update"])),
  taskId: required(id),
  contextId: required(id, nothing),
  status: required(status),
  final: optional(boolean),
  metadata: optional(struct),
});

const artifactUpdate: Schema<TaskArtifactUpdateEvent03> = object<TaskArtifactUpdateEvent03>({
  kind: optional(oneName(["artifact-update"])),
  taskId: required(id),
  contextId: required(id, nothing),
  artifact: required(artifact),
  append: optional(boolean),
  lastChunk: optional(boolean),
  metadata: optional(struct),
});

export const event03: Schema<Event03> = byKind<Event03>(
  {
    task: task03 as Schema<Extract<Event03, { kind: "task" }>>,
    message: message03 as Schema<Extract<Event03, { kind: "message" }>>,
    "status-update": statusUpdate as Schema<Extract<Event03, { kind: "status-update" }>>,
    "artifact-update": artifactUpdate as Schema<Extract<Event03, { kind: "artifact-update" }>>,
  },
  [
    ["artifact", "artifact-update"],
    ["parts", "message"],
    ["taskId", "status-update"],
    ["status", "task"],
  ],
);

const authentication03 = object<NonNullable<PushNotificationConfig03["authentication"]>>({
  schemes: required(list(filled, "must name at least one scheme"), none),
  credentials: optional(blank),
});

/** One without members says nothing, so it counts as absent: writers of ProtoJSON leave empty lists out. */
const authenticationOrNone03: Schema<NonNullable<PushNotificationConfig03["authentication"]>> = (value, state) =>
  isObject(value) && Object.keys(value).length === 0 ? undefined : authentication03(value, state);

export const pushNotificationConfig03: Schema<PushNotificationConfig03> = object<PushNotificationConfig03>({
  id: optional(optionalId),
  url: required(filled),
  token: optional(blank),
  authentication: optional(authenticationOrNone03),
});

export const taskPushNotificationConfig03: Schema<TaskPushNotificationConfig03> = object<TaskPushNotificationConfig03>({
  taskId: required(id),
  pushNotificationConfig: required(pushNotificationConfig03),
});

export const messageSendParams03: Schema<MessageSendParams03> = object<MessageSendParams03>({
  message: required(message03),
  configuration: optional(
    object<MessageSendConfiguration03>({
      acceptedOutputModes: optional(strings),
      historyLength: optional(historyLength),
      pushNotificationConfig: optional(pushNotificationConfig03),
      blocking: optional(boolean),
    }),
  ),
  metadata: optional(struct),
});

export const taskIdParams03: Schema<TaskIdParams03> = object<TaskIdParams03>({
  id: required(id),
  metadata: optional(struct),
});

export const taskQueryParams03: Schema<TaskQueryParams03> = object<TaskQueryParams03>({
  id: required(id),
  metadata: optional(struct),
  historyLength: optional(historyLength),
});

export const pushConfigGetParams03: Schema<PushConfigParams03> = object<PushConfigParams03>({
  id: required(id),
  metadata: optional(struct),
  pushNotificationConfigId: optional(optionalId),
});

export const pushConfigDeleteParams03: Schema<PushConfigDeleteParams03> = object<PushConfigDeleteParams03>({
  id: required(id),
  metadata: optional(struct),
  pushNotificationConfigId: required(id),
});
