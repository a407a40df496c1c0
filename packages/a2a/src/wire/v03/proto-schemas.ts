import {
  base64,
  blank,
  boolean,
  exactlyOne,
  filled,
  id,
  integer,
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
import type { JsonObject } from "../../model/index.ts";
import { pushNotificationConfig03 } from "./schemas.ts";
import type { PushNotificationConfig03 } from "./types.ts";

/**
 * ProtoJSON of 0.3, for REST and gRPC (0.3 §3.2.2, §3.2.3): types and schemas. `object` reads fields under their proto names
 * too; `aliased` reads the few that have a name of their own in the proto. What SDKs added is read as well: names of files,
 * metadata of parts.
 */

export interface ProtoFile {
  readonly fileWithUri?: string;
  readonly fileWithBytes?: string;
  readonly mimeType?: string;
  readonly name?: string;
}

export interface ProtoPart {
  readonly text?: string;
  readonly file?: ProtoFile;
  readonly data?: { readonly data: JsonObject };
  readonly metadata?: JsonObject;
}

export type ProtoRole = "ROLE_USER" | "ROLE_AGENT";

export interface ProtoMessage {
  readonly messageId: string;
  readonly contextId?: string;
  readonly taskId?: string;
  readonly role: ProtoRole;
  readonly content: readonly ProtoPart[];
  readonly metadata?: JsonObject;
  readonly extensions?: readonly string[];
}

export interface ProtoArtifact {
  readonly artifactId: string;
  readonly name?: string;
  readonly description?: string;
  readonly parts: readonly ProtoPart[];
  readonly metadata?: JsonObject;
  readonly extensions?: readonly string[];
}

export const protoStates = [
  "TASK_STATE_SUBMITTED",
  "TASK_STATE_WORKING",
  "TASK_STATE_INPUT_REQUIRED",
  "TASK_STATE_COMPLETED",
  "TASK_STATE_CANCELLED",
  "TASK_STATE_FAILED",
  "TASK_STATE_REJECTED",
  "TASK_STATE_AUTH_REQUIRED",
  // The spelling of 1.0, which implementations of both versions send.
  "TASK_STATE_CANCELED",
  "TASK_STATE_UNSPECIFIED",
] as const;

export type ProtoState = (typeof protoStates)[number];

export interface ProtoStatus {
  readonly state: ProtoState;
  readonly message?: ProtoMessage;
  readonly timestamp?: string;
}

export interface ProtoTask {
  readonly id: string;
  readonly contextId?: string;
  readonly status: ProtoStatus;
  readonly artifacts?: readonly ProtoArtifact[];
  readonly history?: readonly ProtoMessage[];
  readonly metadata?: JsonObject;
}

export interface ProtoStatusUpdate {
  readonly taskId: string;
  readonly contextId: string;
  readonly status: ProtoStatus;
  readonly final?: boolean;
  readonly metadata?: JsonObject;
}

export interface ProtoArtifactUpdate {
  readonly taskId: string;
  readonly contextId: string;
  readonly artifact: ProtoArtifact;
  readonly append?: boolean;
  readonly lastChunk?: boolean;
  readonly metadata?: JsonObject;
}

export interface ProtoStreamResponse {
  readonly task?: ProtoTask;
  readonly message?: ProtoMessage;
  readonly statusUpdate?: ProtoStatusUpdate;
  readonly artifactUpdate?: ProtoArtifactUpdate;
}

export interface ProtoTaskPushConfig {
  readonly name?: string;
  readonly pushNotificationConfig: PushNotificationConfig03;
}

export interface ProtoSendRequest {
  readonly message: ProtoMessage;
  readonly configuration?: {
    readonly acceptedOutputModes?: readonly string[];
    readonly pushNotification?: PushNotificationConfig03;
    readonly historyLength?: number;
    readonly blocking?: boolean;
  };
  readonly metadata?: JsonObject;
}

/** Reads the field `alias` as the field `name`. */
function aliased<T>(schema: Schema<T>, alias: string, name: string): Schema<T> {
  return (value, run) => {
    if (typeof value !== "object" || value === null || !(alias in value) || name in value) return schema(value, run);
    const { [alias]: member, ...rest } = value as Record<string, unknown>;
    return schema({ ...rest, [name]: member }, run);
  };
}

const part: Schema<ProtoPart> = object<ProtoPart>(
  {
    text: optional(string),
    file: optional(
      object<ProtoFile>(
        {
          fileWithUri: optional(filled),
          fileWithBytes: optional(base64),
          mimeType: optional(blank),
          name: optional(blank),
        },
        { members: ["fileWithUri", "fileWithBytes"] },
      ),
    ),
    data: optional(object<{ readonly data: JsonObject }>({ data: required(struct) })),
    metadata: optional(struct),
  },
  { members: ["text", "file", "data"] },
);

const parts: Schema<readonly ProtoPart[]> = list(part, "must hold at least one part");

const protoMessage: Schema<ProtoMessage> = object<ProtoMessage>({
  messageId: required(id, nothing),
  contextId: optional(optionalId),
  taskId: optional(optionalId),
  role: required(oneName<ProtoRole>(["ROLE_USER", "ROLE_AGENT"])),
  content: required(parts, none),
  metadata: optional(struct),
  extensions: optional(strings),
});

const artifact: Schema<ProtoArtifact> = object<ProtoArtifact>({
  artifactId: required(id, nothing),
  name: optional(blank),
  description: optional(blank),
  parts: required(parts, none),
  metadata: optional(struct),
  extensions: optional(strings),
});

const status: Schema<ProtoStatus> = aliased(
  object<ProtoStatus>({
    state: required(oneName(protoStates)),
    message: optional(protoMessage),
    timestamp: optional(timestamp),
  }),
  "update",
  "message",
);

export const protoTask: Schema<ProtoTask> = object<ProtoTask>({
  id: required(id),
  contextId: optional(optionalId),
  status: required(status),
  artifacts: optional(list(artifact)),
  history: optional(list(protoMessage)),
  metadata: optional(struct),
});

export const protoStreamResponse: Schema<ProtoStreamResponse> = aliased(
  object<ProtoStreamResponse>(
    {
      task: optional(protoTask),
      message: optional(protoMessage),
      statusUpdate: optional(
        object<ProtoStatusUpdate>({
          taskId: required(id),
          contextId: required(optionalId, nothing),
          status: required(status),
          final: optional(boolean),
          metadata: optional(struct),
        }),
      ),
      artifactUpdate: optional(
        object<ProtoArtifactUpdate>({
          taskId: required(id),
          contextId: required(optionalId, nothing),
          artifact: required(artifact),
          append: optional(boolean),
          lastChunk: optional(boolean),
          metadata: optional(struct),
        }),
      ),
    },
    exactlyOne,
  ),
  "msg",
  "message",
);

export const protoTaskPushConfig: Schema<ProtoTaskPushConfig> = object<ProtoTaskPushConfig>({
  name: optional(blank),
  pushNotificationConfig: required(pushNotificationConfig03),
});

export const protoSendRequest: Schema<ProtoSendRequest> = aliased(
  object<ProtoSendRequest>({
    message: required(protoMessage),
    configuration: optional(
      object<NonNullable<ProtoSendRequest["configuration"]>>({
        acceptedOutputModes: optional(strings),
        pushNotification: optional(pushNotificationConfig03),
        historyLength: optional(integer(0)),
        blocking: optional(boolean),
      }),
    ),
    metadata: optional(struct),
  }),
  "request",
  "message",
);

export const protoQuery: Schema<{ readonly id: string; readonly historyLength?: number }> = object<{
  readonly id: string;
  readonly historyLength?: number;
}>({ id: required(id), historyLength: optional(integer(0)) });
