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
import type { JsonObject, JsonValue } from "./json.ts";
import type {
  CancelTaskRequest,
  DeleteTaskPushNotificationConfigRequest,
  Empty,
  GetExtendedAgentCardRequest,
  GetTaskPushNotificationConfigRequest,
  GetTaskRequest,
  ListTaskPushNotificationConfigsRequest,
  ListTaskPushNotificationConfigsResponse,
  ListTasksRequest,
  ListTasksResponse,
  SendMessageConfiguration,
  SendMessageRequest,
  SendMessageResponse,
  SubscribeToTaskRequest,
} from "./requests.ts";
import type {
  Artifact,
  AuthenticationInfo,
  Message,
  Part,
  Role,
  StreamResponse,
  Task,
  TaskArtifactUpdateEvent,
  TaskPushNotificationConfig,
  TaskState,
  TaskStatus,
  TaskStatusUpdateEvent,
} from "./types.ts";

/**
 * A schema for each message of the A2A 1.0 proto, except those of the card. What is required there is required here.
 * Encoders of protobuf leave default values out: where that happens in an answer, the value is filled in.
 */

/** The members of the union side by side, as a schema sees them. `OneOf` makes sure that exactly one is there. */
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

/** Checks a `TaskState`. */
export const taskStateSchema: Schema<TaskState> = oneName(taskStates);
/** Checks a `Role`. */
export const roleSchema: Schema<Role> = oneName(["ROLE_USER", "ROLE_AGENT"]);

/** Checks a `Part`. */
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
  // The JavaScript SDK drops `data: null`, so such a part arrives with no content at all.
  { members: ["text", "raw", "url", "data"], none: { data: null } },
) as Schema<Part>;

const parts: Schema<readonly Part[]> = list(partSchema, "must hold at least one part");

/** Checks a `Message`. */
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

/** Checks an `Artifact`. */
export const artifactSchema: Schema<Artifact> = object<Artifact>({
  artifactId: required(id, nothing),
  name: optional(blank),
  description: optional(blank),
  parts: required(parts, none),
  metadata: optional(struct),
  extensions: optional(strings),
});

/** Checks a `TaskStatus`. */
export const taskStatusSchema: Schema<TaskStatus> = object<TaskStatus>({
  state: required(taskStateSchema),
  message: optional(messageSchema),
  timestamp: optional(timestamp),
});

/** Checks a `Task`. */
export const taskSchema: Schema<Task> = object<Task>({
  id: required(id),
  contextId: optional(optionalId),
  status: required(taskStatusSchema),
  artifacts: optional(list(artifactSchema)),
  history: optional(list(messageSchema)),
  metadata: optional(struct),
});

/** Checks a `TaskStatusUpdateEvent`. */
export const taskStatusUpdateEventSchema: Schema<TaskStatusUpdateEvent> = object<TaskStatusUpdateEvent>({
  taskId: required(id),
  contextId: required(id, nothing),
  status: required(taskStatusSchema),
  metadata: optional(struct),
});

/** Checks a `TaskArtifactUpdateEvent`. */
export const taskArtifactUpdateEventSchema: Schema<TaskArtifactUpdateEvent> = object<TaskArtifactUpdateEvent>({
  taskId: required(id),
  contextId: required(id, nothing),
  artifact: required(artifactSchema),
  append: optional(boolean),
  lastChunk: optional(boolean),
  metadata: optional(struct),
});

/** Checks a `StreamResponse`. */
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

/** Checks a `SendMessageResponse`. */
export const sendMessageResponseSchema: Schema<SendMessageResponse> = object<{
  readonly task?: Task;
  readonly message?: Message;
}>({ task: optional(taskSchema), message: optional(messageSchema) }, exactlyOne) as Schema<SendMessageResponse>;

/** Checks an `AuthenticationInfo`. */
export const authenticationInfoSchema: Schema<AuthenticationInfo> = object<AuthenticationInfo>({
  scheme: required(filled),
  credentials: optional(blank),
});

/** Checks a `TaskPushNotificationConfig`. */
export const taskPushNotificationConfigSchema: Schema<TaskPushNotificationConfig> = object<TaskPushNotificationConfig>({
  tenant: optional(optionalId),
  id: optional(optionalId),
  taskId: optional(optionalId),
  url: required(filled),
  token: optional(blank),
  authentication: optional(authenticationInfoSchema),
});

/** Checks a `SendMessageConfiguration`. */
export const sendMessageConfigurationSchema: Schema<SendMessageConfiguration> = object<SendMessageConfiguration>({
  acceptedOutputModes: optional(strings),
  taskPushNotificationConfig: optional(taskPushNotificationConfigSchema),
  historyLength: optional(historyLength),
  returnImmediately: optional(boolean),
});

/** Checks a `SendMessageRequest`. */
export const sendMessageRequestSchema: Schema<SendMessageRequest> = object<SendMessageRequest>({
  tenant: optional(optionalId),
  message: required(messageSchema),
  configuration: optional(sendMessageConfigurationSchema),
  metadata: optional(struct),
});

/** Checks a `GetTaskRequest`. */
export const getTaskRequestSchema: Schema<GetTaskRequest> = object<GetTaskRequest>({
  tenant: optional(optionalId),
  id: required(id),
  historyLength: optional(historyLength),
});

/** Checks a `ListTasksRequest`. */
export const listTasksRequestSchema: Schema<ListTasksRequest> = object<ListTasksRequest>({
  tenant: optional(optionalId),
  contextId: optional(optionalId),
  // The zero value of a proto3 enumeration means: not set.
  status: optional(oneName(taskStates, "TASK_STATE_UNSPECIFIED")),
  pageSize: optional(integer(1, 100)),
  pageToken: optional(blank),
  historyLength: optional(historyLength),
  statusTimestampAfter: optional(timestamp),
  includeArtifacts: optional(boolean),
});

/** Checks a `ListTasksResponse`. */
export const listTasksResponseSchema: Schema<ListTasksResponse> = object<ListTasksResponse>({
  tasks: required(list(taskSchema), none),
  nextPageToken: required(string, nothing),
  pageSize: required(integer(0), () => 0),
  totalSize: required(integer(0), () => 0),
});

/** Checks a `CancelTaskRequest`. */
export const cancelTaskRequestSchema: Schema<CancelTaskRequest> = object<CancelTaskRequest>({
  tenant: optional(optionalId),
  id: required(id),
  metadata: optional(struct),
});

/** Checks a `SubscribeToTaskRequest`. */
export const subscribeToTaskRequestSchema: Schema<SubscribeToTaskRequest> = object<SubscribeToTaskRequest>({
  tenant: optional(optionalId),
  id: required(id),
});

const pushConfigKey: Schema<GetTaskPushNotificationConfigRequest> = object<GetTaskPushNotificationConfigRequest>({
  tenant: optional(optionalId),
  taskId: required(id),
  id: required(id),
});

/** Checks a `GetTaskPushNotificationConfigRequest`. */
export const getTaskPushNotificationConfigRequestSchema: Schema<GetTaskPushNotificationConfigRequest> = pushConfigKey;
/** Checks a `DeleteTaskPushNotificationConfigRequest`. */
export const deleteTaskPushNotificationConfigRequestSchema: Schema<DeleteTaskPushNotificationConfigRequest> =
  pushConfigKey;

/** Checks a `ListTaskPushNotificationConfigsRequest`. */
export const listTaskPushNotificationConfigsRequestSchema: Schema<ListTaskPushNotificationConfigsRequest> =
  object<ListTaskPushNotificationConfigsRequest>({
    tenant: optional(optionalId),
    taskId: required(id),
    pageSize: optional(integer(0)),
    pageToken: optional(blank),
  });

/** Checks a `ListTaskPushNotificationConfigsResponse`. */
export const listTaskPushNotificationConfigsResponseSchema: Schema<ListTaskPushNotificationConfigsResponse> =
  object<ListTaskPushNotificationConfigsResponse>({
    configs: optional(list(taskPushNotificationConfigSchema)),
    nextPageToken: optional(blank),
  });

/** Checks a `GetExtendedAgentCardRequest`. */
export const getExtendedAgentCardRequestSchema: Schema<GetExtendedAgentCardRequest> =
  object<GetExtendedAgentCardRequest>({ tenant: optional(optionalId) });

/** Checks an `Empty`. */
export const emptySchema: Schema<Empty> = object<Empty>({});
