import type { JsonObject, JsonValue } from "./json.ts";

/** The data model, exactly as the JSON of A2A 1.0 (§4, §5.5). Members of a union differ in the one member that is present. */

/** An instant in UTC as text, `YYYY-MM-DDTHH:mm:ss.sssZ` (A2A 1.0 §5.6.1). */
export type Timestamp = string;

/**
 * The state of a task (A2A 1.0 §4.1.3). SUBMITTED and WORKING are active; INPUT_REQUIRED and AUTH_REQUIRED wait for the caller; COMPLETED,
 * FAILED, CANCELED and REJECTED are terminal: the task never leaves them.
 */
export type TaskState =
  | "TASK_STATE_SUBMITTED"
  | "TASK_STATE_WORKING"
  | "TASK_STATE_COMPLETED"
  | "TASK_STATE_FAILED"
  | "TASK_STATE_CANCELED"
  | "TASK_STATE_INPUT_REQUIRED"
  | "TASK_STATE_REJECTED"
  | "TASK_STATE_AUTH_REQUIRED";

/** The sender of a message: the client or the agent (A2A 1.0 §4.1.5). */
export type Role = "ROLE_USER" | "ROLE_AGENT";

interface PartFields {
  /** Metadata of this part. */
  readonly metadata?: JsonObject;
  /** Name of the file, such as `weather.csv`. */
  readonly filename?: string;
  /** Media type of the content, such as `text/plain` or `image/png`. */
  readonly mediaType?: string;
}

/** A part that is text (A2A 1.0 §4.1.6). */
export interface TextPart extends PartFields {
  /** The text. */
  readonly text: string;
  readonly raw?: never;
  readonly url?: never;
  readonly data?: never;
}

/** A part with the bytes of a file (A2A 1.0 §4.1.6). */
export interface RawPart extends PartFields {
  /** The bytes as base64 text. `file()` creates such a part from bytes, and `bytesOf()` returns its bytes. */
  readonly raw: string;
  readonly text?: never;
  readonly url?: never;
  readonly data?: never;
}

/** A part with the URL of a file (A2A 1.0 §4.1.6). */
export interface UrlPart extends PartFields {
  /** Address of the file, chosen by the sender of the message. Check the host before you fetch it. */
  readonly url: string;
  readonly text?: never;
  readonly raw?: never;
  readonly data?: never;
}

/** A part that is a JSON value (A2A 1.0 §4.1.6). */
export interface DataPart extends PartFields {
  /** The value. `null` is a value too. */
  readonly data: JsonValue;
  readonly text?: never;
  readonly raw?: never;
  readonly url?: never;
}

/** A piece of a message or an artifact (A2A 1.0 §4.1.6). It has exactly one of `text`, `raw`, `url` and `data`. */
export type Part = TextPart | RawPart | UrlPart | DataPart;

/** One message of the client or the agent (A2A 1.0 §4.1.4). */
export interface Message {
  /** Identifier that the sender chose. A repeated message with the same identifier is a retry. */
  readonly messageId: string;
  /** The conversation that it belongs to. Absent in a client's first message: the server creates one. */
  readonly contextId?: string;
  /** The task that it belongs to. Absent if the message starts a task, or gets a direct reply. */
  readonly taskId?: string;
  /** The sender's role. */
  readonly role: Role;
  /** The content, at least one part. */
  readonly parts: readonly Part[];
  /** Anything else about this message. Extensions keep their data here, under their URI. */
  readonly metadata?: JsonObject;
  /** URIs of the extensions that contributed to this message. */
  readonly extensions?: readonly string[];
  /** Other tasks that this message refers to. */
  readonly referenceTaskIds?: readonly string[];
}

/** A result of a task (A2A 1.0 §4.1.7). */
export interface Artifact {
  /** Identifier, unique within its task. */
  readonly artifactId: string;
  /** Name for people. */
  readonly name?: string;
  /** Description for people. */
  readonly description?: string;
  /** The content, at least one part. Chunks of a stream add parts to the end. */
  readonly parts: readonly Part[];
  /** Anything else about this artifact. */
  readonly metadata?: JsonObject;
  /** URIs of the extensions that contributed to this artifact. */
  readonly extensions?: readonly string[];
}

/** The state of a task, with the agent's message about it (A2A 1.0 §4.1.2). */
export interface TaskStatus {
  /** The state. */
  readonly state: TaskState;
  /** The agent's message for the state: progress, a question, or the reason why the task ended. */
  readonly message?: Message;
  /** When the state was set. */
  readonly timestamp?: Timestamp;
}

/** A unit of work of an agent (A2A 1.0 §4.1.1). */
export interface Task {
  /** Identifier that the server chose. */
  readonly id: string;
  /** The conversation that it belongs to. */
  readonly contextId?: string;
  /** Its current status. */
  readonly status: TaskStatus;
  /** Its results so far. */
  readonly artifacts?: readonly Artifact[];
  /** Its newest messages, oldest first, up to the requested number (`historyLength`, A2A 1.0 §3.2.4). */
  readonly history?: readonly Message[];
  /** Anything else about this task. */
  readonly metadata?: JsonObject;
}

/** An event: the status of a task has changed (A2A 1.0 §4.2.1). */
export interface TaskStatusUpdateEvent {
  /** The task. */
  readonly taskId: string;
  /** The conversation of the task. */
  readonly contextId: string;
  /** The new status. */
  readonly status: TaskStatus;
  /** Anything else about this update. */
  readonly metadata?: JsonObject;
}

/** An event: a new artifact, or more parts of one (A2A 1.0 §4.2.2). */
export interface TaskArtifactUpdateEvent {
  /** The task. */
  readonly taskId: string;
  /** The conversation of the task. */
  readonly contextId: string;
  /** The artifact. With `append` its parts are added to earlier ones with the same `artifactId`. */
  readonly artifact: Artifact;
  /** Whether the parts are added to an existing artifact. Default: false, the artifact is new. */
  readonly append?: boolean;
  /** Whether the artifact is complete with this event. */
  readonly lastChunk?: boolean;
  /** Anything else about this update. */
  readonly metadata?: JsonObject;
}

/** One event of a stream (A2A 1.0 §3.2.3). It has exactly one member. */
export type StreamResponse =
  | {
      /** The current task. */
      readonly task: Task;
      readonly message?: never;
      readonly statusUpdate?: never;
      readonly artifactUpdate?: never;
    }
  | {
      /** A direct reply. It is the only event of its stream, and there is no task. */
      readonly message: Message;
      readonly task?: never;
      readonly statusUpdate?: never;
      readonly artifactUpdate?: never;
    }
  | {
      /** The status of the task has changed. */
      readonly statusUpdate: TaskStatusUpdateEvent;
      readonly task?: never;
      readonly message?: never;
      readonly artifactUpdate?: never;
    }
  | {
      /** A new artifact, or more parts of one. */
      readonly artifactUpdate: TaskArtifactUpdateEvent;
      readonly task?: never;
      readonly message?: never;
      readonly statusUpdate?: never;
    };

/** The server's authentication at a webhook (A2A 1.0 §4.3.2). */
export interface AuthenticationInfo {
  /** HTTP authentication scheme, such as `Bearer`. Upper and lower case do not matter. */
  readonly scheme: string;
  /** The credentials after the scheme in the `Authorization` header. */
  readonly credentials?: string;
}

/** A webhook that a task's events are posted to (A2A 1.0 §4.3.1). */
export interface TaskPushNotificationConfig {
  /** The `tenant` of the interface that is called, if it has one. */
  readonly tenant?: string;
  /** Identifier of the configuration. Absent in a request: the server creates an id. */
  readonly id?: string;
  /** The task. Absent if the configuration is sent with a message: it then applies to the message's task. */
  readonly taskId?: string;
  /** Address that events are posted to. */
  readonly url: string;
  /** A secret of the receiver. The server sends it with each event, so that the receiver can verify the sender. */
  readonly token?: string;
  /** The server's authentication at the receiver. */
  readonly authentication?: AuthenticationInfo;
}

/* The requests and the answers of the operations, exactly as their JSON is (A2A 1.0 §3). */

/** The answer to a message (A2A 1.0 §3.1.1): either a task or a direct reply. */
export type SendMessageResponse =
  | {
      /** The task that the message began or continued. */
      readonly task: Task;
      readonly message?: never;
    }
  | {
      /** A direct reply. There is no task. */
      readonly message: Message;
      readonly task?: never;
    };

/** Options for the answer to a message (A2A 1.0 §3.2.2). */
export interface SendMessageConfiguration {
  /** Media types that the client can read. Default: any. */
  readonly acceptedOutputModes?: readonly string[];
  /** A webhook for the task of this message. */
  readonly taskPushNotificationConfig?: TaskPushNotificationConfig;
  /** Maximum messages of the history in the answer (A2A 1.0 §3.2.4). 0: no history. Default: no limit. */
  readonly historyLength?: number;
  /** Whether to answer as soon as the task exists. Default: false, the answer waits for a terminal or interrupted state. */
  readonly returnImmediately?: boolean;
}

/** The request of `SendMessage` and `SendStreamingMessage` (A2A 1.0 §3.2.1). */
export interface SendMessageRequest extends TenantRequest {
  /** The message. */
  readonly message: Message;
  /** Options for the answer. */
  readonly configuration?: SendMessageConfiguration;
  /** Anything else about this request. */
  readonly metadata?: JsonObject;
}

/** A request that may be for one of several agents at an address. */
export interface TenantRequest {
  /** The `tenant` of the interface that is called, if it has one. */
  readonly tenant?: string;
}

/** The request of `SubscribeToTask` (A2A 1.0 §3.1.6). */
export interface SubscribeToTaskRequest extends TenantRequest {
  /** The task. */
  readonly id: string;
}

/** The request of `GetTask` (A2A 1.0 §3.1.3). */
export interface GetTaskRequest extends SubscribeToTaskRequest {
  /** Maximum messages of the history in the answer (A2A 1.0 §3.2.4). 0: no history. Default: no limit. */
  readonly historyLength?: number;
}

/** The request of `CancelTask` (A2A 1.0 §3.1.5). */
export interface CancelTaskRequest extends SubscribeToTaskRequest {
  /** Anything else about this request. */
  readonly metadata?: JsonObject;
}

/** The request of `ListTasks` (A2A 1.0 §3.1.4). An absent filter matches everything. */
export interface ListTasksRequest extends TenantRequest {
  /** Only tasks of this conversation. */
  readonly contextId?: string;
  /** Only tasks in this state. */
  readonly status?: TaskState;
  /** Maximum number of tasks on the page, 1 to 100. Default 50. */
  readonly pageSize?: number;
  /** `nextPageToken` of the previous page. Absent: the first page. */
  readonly pageToken?: string;
  /** Maximum messages of each task's history (A2A 1.0 §3.2.4). 0: no history. */
  readonly historyLength?: number;
  /** Only tasks whose status was set at this time or later. */
  readonly statusTimestampAfter?: Timestamp;
  /** Whether tasks carry their artifacts. Default false. */
  readonly includeArtifacts?: boolean;
}

/** A page of tasks (A2A 1.0 §3.1.4). Every member is always present. */
export interface ListTasksResponse {
  /** The tasks, newest status first. */
  readonly tasks: readonly Task[];
  /** The `pageToken` of the next page. `""` on the last page. */
  readonly nextPageToken: string;
  /** Maximum number of tasks on this page. */
  readonly pageSize: number;
  /** Number of matching tasks on all pages. */
  readonly totalSize: number;
}

/** The request of `GetTaskPushNotificationConfig` (A2A 1.0 §3.1.8). */
export interface GetTaskPushNotificationConfigRequest extends TenantRequest {
  /** The task that the configuration belongs to. */
  readonly taskId: string;
  /** The configuration. */
  readonly id: string;
}

/** The request of `DeleteTaskPushNotificationConfig` (A2A 1.0 §3.1.10). */
export type DeleteTaskPushNotificationConfigRequest = GetTaskPushNotificationConfigRequest;

/** The request of `ListTaskPushNotificationConfigs` (A2A 1.0 §3.1.9). */
export interface ListTaskPushNotificationConfigsRequest extends TenantRequest {
  /** The task. */
  readonly taskId: string;
  /** Maximum number of configurations on the page. Default: the server's choice. */
  readonly pageSize?: number;
  /** `nextPageToken` of the previous page. Absent: the first page. */
  readonly pageToken?: string;
}

/** The webhooks of a task (A2A 1.0 §3.1.9). */
export interface ListTaskPushNotificationConfigsResponse {
  /** The configurations of this page. */
  readonly configs?: readonly TaskPushNotificationConfig[];
  /** The `pageToken` of the next page. Absent or `""` on the last page. */
  readonly nextPageToken?: string;
}

/** The request of `GetExtendedAgentCard` (A2A 1.0 §3.1.11). */
export type GetExtendedAgentCardRequest = TenantRequest;

/** The answer of an operation that returns nothing, such as `DeleteTaskPushNotificationConfig`. */
export interface Empty {
  readonly [key: string]: never;
}
