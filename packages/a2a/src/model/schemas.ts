import { taskStates } from "./states.ts";
import {
  anything,
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
} from "./schema.ts";
import type {
  Artifact,
  AuthenticationInfo,
  CancelTaskRequest,
  DeleteTaskPushNotificationConfigRequest,
  Empty,
  GetExtendedAgentCardRequest,
  GetTaskPushNotificationConfigRequest,
  GetTaskRequest,
  JsonObject,
  JsonValue,
  ListTaskPushNotificationConfigsRequest,
  ListTaskPushNotificationConfigsResponse,
  ListTasksRequest,
  ListTasksResponse,
  Message,
  Part,
  Role,
  SendMessageConfiguration,
  SendMessageRequest,
  SendMessageResponse,
  StreamResponse,
  SubscribeToTaskRequest,
  Task,
  TaskArtifactUpdateEvent,
  TaskPushNotificationConfig,
  TaskState,
  TaskStatus,
  TaskStatusUpdateEvent,
} from "./types.ts";

/**
 * A schema for each message of the A2A 1.0 proto but those of the card. What is required there is required here; a
 * required value that an encoder of protobuf leaves out, since it is the default, is filled in when a peer answers.
 */

/** A union with all its members side by side, as a schema sees it; `OneOf` holds that there is one. */
interface AnyPart {
  readonly text?: string;
  readonly raw?: string;
  readonly url?: string;
  readonly data?: JsonValue;
  readonly metadata?: JsonObject;
  readonly filename?: string;
  readonly mediaType?: string;
}

const ids: Schema<readonly string[]> = list(id);
const historyLength: Schema<number> = integer(0);

export const taskStateSchema: Schema<TaskState> = oneName(taskStates);
export const roleSchema: Schema<Role> = oneName(["ROLE_USER", "ROLE_AGENT"]);

export const partSchema: Schema<Part> = object<AnyPart>(
  {
    text: optional(string),
    raw: optional(base64),
    url: optional(filled),
    data: { schema: anything, required: false, nullable: true },
    metadata: optional(struct),
    filename: optional(blank),
    mediaType: optional(blank),
  },
  // The codec of the JavaScript SDK loses `data: null`: what comes from it is a part with nothing in it.
  { members: ["text", "raw", "url", "data"], none: { data: null } },
) as Schema<Part>;

const parts: Schema<readonly Part[]> = list(partSchema, "must hold at least one part");

export const messageSchema: Schema<Message> = object<Message>({
  messageId: required(id, nothing),
  contextId: optional(optionalId),
  taskId: optional(optionalId),
  role: required(roleSchema),
  parts: required(parts, none),
  metadata: optional(struct),
  extensions: optional(strings),
  referenceTaskIds: optional(ids),
});

export const artifactSchema: Schema<Artifact> = object<Artifact>({
  artifactId: required(id, nothing),
  name: optional(blank),
  description: optional(blank),
  parts: required(parts, none),
  metadata: optional(struct),
  extensions: optional(strings),
});

export const taskStatusSchema: Schema<TaskStatus> = object<TaskStatus>({
  state: required(taskStateSchema),
  message: optional(messageSchema),
  timestamp: optional(timestamp),
});

export const taskSchema: Schema<Task> = object<Task>({
  id: required(id),
  contextId: optional(optionalId),
  status: required(taskStatusSchema),
  artifacts: optional(list(artifactSchema)),
  history: optional(list(messageSchema)),
  metadata: optional(struct),
});

export const taskStatusUpdateEventSchema: Schema<TaskStatusUpdateEvent> = object<TaskStatusUpdateEvent>({
  taskId: required(id),
  contextId: required(id, nothing),
  status: required(taskStatusSchema),
  metadata: optional(struct),
});

export const taskArtifactUpdateEventSchema: Schema<TaskArtifactUpdateEvent> = object<TaskArtifactUpdateEvent>({
  taskId: required(id),
  contextId: required(id, nothing),
  artifact: required(artifactSchema),
  append: optional(boolean),
  lastChunk: optional(boolean),
  metadata: optional(struct),
});

export const streamResponseSchema: Schema<StreamResponse> = object<{
  readonly task?: Task;
  readonly message?: Message;
  readonly statusUpdate?: TaskStatusUpdateEvent;
  readonly artifactUpdate?: TaskArtifactUpdateEvent;
}>(
  {
    task: optional(taskSchema),
    message: optional(messageSchema),
    statusUpdate: optional(taskStatusUpdateEventSchema),
    artifactUpdate: optional(taskArtifactUpdateEventSchema),
  },
  exactlyOne,
) as Schema<StreamResponse>;

export const sendMessageResponseSchema: Schema<SendMessageResponse> = object<{
  readonly task?: Task;
  readonly message?: Message;
}>({ task: optional(taskSchema), message: optional(messageSchema) }, exactlyOne) as Schema<SendMessageResponse>;

export const authenticationInfoSchema: Schema<AuthenticationInfo> = object<AuthenticationInfo>({
  scheme: required(filled),
  credentials: optional(blank),
});

export const taskPushNotificationConfigSchema: Schema<TaskPushNotificationConfig> = object<TaskPushNotificationConfig>({
  tenant: optional(optionalId),
  id: optional(optionalId),
  taskId: optional(optionalId),
  url: required(filled),
  token: optional(blank),
  authentication: optional(authenticationInfoSchema),
});

export const sendMessageConfigurationSchema: Schema<SendMessageConfiguration> = object<SendMessageConfiguration>({
  acceptedOutputModes: optional(strings),
  taskPushNotificationConfig: optional(taskPushNotificationConfigSchema),
  historyLength: optional(historyLength),
  returnImmediately: optional(boolean),
});

export const sendMessageRequestSchema: Schema<SendMessageRequest> = object<SendMessageRequest>({
  tenant: optional(optionalId),
  message: required(messageSchema),
  configuration: optional(sendMessageConfigurationSchema),
  metadata: optional(struct),
});

export const getTaskRequestSchema: Schema<GetTaskRequest> = object<GetTaskRequest>({
  tenant: optional(optionalId),
  id: required(id),
  historyLength: optional(historyLength),
});

export const listTasksRequestSchema: Schema<ListTasksRequest> = object<ListTasksRequest>({
  tenant: optional(optionalId),
  contextId: optional(optionalId),
  // The zero value of a proto3 enumeration means that it was not set.
  status: optional(oneName(taskStates, "TASK_STATE_UNSPECIFIED")),
  pageSize: optional(integer(1, 100)),
  pageToken: optional(blank),
  historyLength: optional(historyLength),
  statusTimestampAfter: optional(timestamp),
  includeArtifacts: optional(boolean),
});

export const listTasksResponseSchema: Schema<ListTasksResponse> = object<ListTasksResponse>({
  tasks: required(list(taskSchema), none),
  nextPageToken: required(string, nothing),
  pageSize: required(integer(0), () => 0),
  totalSize: required(integer(0), () => 0),
});

export const cancelTaskRequestSchema: Schema<CancelTaskRequest> = object<CancelTaskRequest>({
  tenant: optional(optionalId),
  id: required(id),
  metadata: optional(struct),
});

export const subscribeToTaskRequestSchema: Schema<SubscribeToTaskRequest> = object<SubscribeToTaskRequest>({
  tenant: optional(optionalId),
  id: required(id),
});

const pushConfigKey: Schema<GetTaskPushNotificationConfigRequest> = object<GetTaskPushNotificationConfigRequest>({
  tenant: optional(optionalId),
  taskId: required(id),
  id: required(id),
});

export const getTaskPushNotificationConfigRequestSchema: Schema<GetTaskPushNotificationConfigRequest> = pushConfigKey;
export const deleteTaskPushNotificationConfigRequestSchema: Schema<DeleteTaskPushNotificationConfigRequest> =
  pushConfigKey;

export const listTaskPushNotificationConfigsRequestSchema: Schema<ListTaskPushNotificationConfigsRequest> =
  object<ListTaskPushNotificationConfigsRequest>({
    tenant: optional(optionalId),
    taskId: required(id),
    pageSize: optional(integer(0)),
    pageToken: optional(blank),
  });

export const listTaskPushNotificationConfigsResponseSchema: Schema<ListTaskPushNotificationConfigsResponse> =
  object<ListTaskPushNotificationConfigsResponse>({
    configs: optional(list(taskPushNotificationConfigSchema)),
    nextPageToken: optional(blank),
  });

export const getExtendedAgentCardRequestSchema: Schema<GetExtendedAgentCardRequest> =
  object<GetExtendedAgentCardRequest>({ tenant: optional(optionalId) });

export const emptySchema: Schema<Empty> = object<Empty>({});
