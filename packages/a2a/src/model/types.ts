/**
 * The data model of A2A 1.0, exactly as its JSON is (A2A 1.0 §4, §5.5): what is required there is required here,
 * enumerations are their names, a union is told apart by the member that is present.
 */

export type JsonValue = string | number | boolean | null | JsonObject | readonly JsonValue[];
export interface JsonObject {
  readonly [key: string]: JsonValue;
}

/** An instant in UTC, `YYYY-MM-DDTHH:mm:ss.sssZ` (A2A 1.0 §5.6.1). */
export type Timestamp = string;

/** A2A 1.0 §4.1.3. */
export type TaskState =
  | "TASK_STATE_SUBMITTED"
  | "TASK_STATE_WORKING"
  | "TASK_STATE_COMPLETED"
  | "TASK_STATE_FAILED"
  | "TASK_STATE_CANCELED"
  | "TASK_STATE_INPUT_REQUIRED"
  | "TASK_STATE_REJECTED"
  | "TASK_STATE_AUTH_REQUIRED";

/** A2A 1.0 §4.1.5. */
export type Role = "ROLE_USER" | "ROLE_AGENT";

interface PartFields {
  readonly metadata?: JsonObject;
  readonly filename?: string;
  readonly mediaType?: string;
}

export interface TextPart extends PartFields {
  readonly text: string;
  readonly raw?: never;
  readonly url?: never;
  readonly data?: never;
}

/** Bytes in the message itself. */
export interface RawPart extends PartFields {
  /** Base64 text, as JSON carries bytes: `file` makes a part of bytes, `bytesOf` gives them back. */
  readonly raw: string;
  readonly text?: never;
  readonly url?: never;
  readonly data?: never;
}

/** Bytes somewhere else. */
export interface UrlPart extends PartFields {
  readonly url: string;
  readonly text?: never;
  readonly raw?: never;
  readonly data?: never;
}

/** Any JSON value, `null` included. */
export interface DataPart extends PartFields {
  readonly data: JsonValue;
  readonly text?: never;
  readonly raw?: never;
  readonly url?: never;
}

/** A2A 1.0 §4.1.6: exactly one of `text`, `raw`, `url`, `data`. */
export type Part = TextPart | RawPart | UrlPart | DataPart;

/** A2A 1.0 §4.1.4. */
export interface Message {
  readonly messageId: string;
  readonly contextId?: string;
  readonly taskId?: string;
  readonly role: Role;
  readonly parts: readonly Part[];
  readonly metadata?: JsonObject;
  readonly extensions?: readonly string[];
  readonly referenceTaskIds?: readonly string[];
}

/** A2A 1.0 §4.1.7. */
export interface Artifact {
  readonly artifactId: string;
  readonly name?: string;
  readonly description?: string;
  readonly parts: readonly Part[];
  readonly metadata?: JsonObject;
  readonly extensions?: readonly string[];
}

/** A2A 1.0 §4.1.2. */
export interface TaskStatus {
  readonly state: TaskState;
  readonly message?: Message;
  readonly timestamp?: Timestamp;
}

/** A2A 1.0 §4.1.1. */
export interface Task {
  readonly id: string;
  readonly contextId?: string;
  readonly status: TaskStatus;
  readonly artifacts?: readonly Artifact[];
  readonly history?: readonly Message[];
  readonly metadata?: JsonObject;
}

/** A2A 1.0 §4.2.1. */
export interface TaskStatusUpdateEvent {
  readonly taskId: string;
  readonly contextId: string;
  readonly status: TaskStatus;
  readonly metadata?: JsonObject;
}

/** A2A 1.0 §4.2.2. */
export interface TaskArtifactUpdateEvent {
  readonly taskId: string;
  readonly contextId: string;
  readonly artifact: Artifact;
  readonly append?: boolean;
  readonly lastChunk?: boolean;
  readonly metadata?: JsonObject;
}

/** A2A 1.0 §3.2.3: exactly one member. */
export type StreamResponse =
  | { readonly task: Task; readonly message?: never; readonly statusUpdate?: never; readonly artifactUpdate?: never }
  | { readonly message: Message; readonly task?: never; readonly statusUpdate?: never; readonly artifactUpdate?: never }
  | {
      readonly statusUpdate: TaskStatusUpdateEvent;
      readonly task?: never;
      readonly message?: never;
      readonly artifactUpdate?: never;
    }
  | {
      readonly artifactUpdate: TaskArtifactUpdateEvent;
      readonly task?: never;
      readonly message?: never;
      readonly statusUpdate?: never;
    };

/** A2A 1.0 §3.1.1: a task or a message, exactly one. */
export type SendMessageResponse =
  { readonly task: Task; readonly message?: never } | { readonly message: Message; readonly task?: never };

/** A2A 1.0 §4.3.2. */
export interface AuthenticationInfo {
  readonly scheme: string;
  readonly credentials?: string;
}

/** A2A 1.0 §4.3.1. */
export interface TaskPushNotificationConfig {
  readonly tenant?: string;
  readonly id?: string;
  readonly taskId?: string;
  readonly url: string;
  readonly token?: string;
  readonly authentication?: AuthenticationInfo;
}

/** A2A 1.0 §3.2.2. */
export interface SendMessageConfiguration {
  readonly acceptedOutputModes?: readonly string[];
  readonly taskPushNotificationConfig?: TaskPushNotificationConfig;
  readonly historyLength?: number;
  readonly returnImmediately?: boolean;
}

/** A2A 1.0 §3.2.1. */
export interface SendMessageRequest {
  readonly tenant?: string;
  readonly message: Message;
  readonly configuration?: SendMessageConfiguration;
  readonly metadata?: JsonObject;
}

export interface GetTaskRequest {
  readonly tenant?: string;
  readonly id: string;
  readonly historyLength?: number;
}

/** A2A 1.0 §3.1.4. */
export interface ListTasksRequest {
  readonly tenant?: string;
  readonly contextId?: string;
  readonly status?: TaskState;
  readonly pageSize?: number;
  readonly pageToken?: string;
  readonly historyLength?: number;
  readonly statusTimestampAfter?: Timestamp;
  readonly includeArtifacts?: boolean;
}

/** A2A 1.0 §3.1.4: every member is always present; `nextPageToken` is `""` on the last page. */
export interface ListTasksResponse {
  readonly tasks: readonly Task[];
  readonly nextPageToken: string;
  readonly pageSize: number;
  readonly totalSize: number;
}

export interface CancelTaskRequest {
  readonly tenant?: string;
  readonly id: string;
  readonly metadata?: JsonObject;
}

export interface SubscribeToTaskRequest {
  readonly tenant?: string;
  readonly id: string;
}

export interface GetTaskPushNotificationConfigRequest {
  readonly tenant?: string;
  readonly taskId: string;
  readonly id: string;
}

export interface DeleteTaskPushNotificationConfigRequest {
  readonly tenant?: string;
  readonly taskId: string;
  readonly id: string;
}

export interface ListTaskPushNotificationConfigsRequest {
  readonly tenant?: string;
  readonly taskId: string;
  readonly pageSize?: number;
  readonly pageToken?: string;
}

export interface ListTaskPushNotificationConfigsResponse {
  readonly configs?: readonly TaskPushNotificationConfig[];
  readonly nextPageToken?: string;
}

export interface GetExtendedAgentCardRequest {
  readonly tenant?: string;
}

/** The answer of an operation that has nothing to say. */
export interface Empty {
  readonly [key: string]: never;
}
