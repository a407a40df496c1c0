import type { JsonObject } from "./json.ts";
import type { Message, Task, TaskPushNotificationConfig, TaskState, Timestamp } from "./types.ts";

/* The requests and the answers of the operations, exactly as their JSON is (A2A 1.0 §3). */

/** The answer to a message (A2A 1.0 §3.1.1): a task or a direct reply, exactly one of them. */
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

/** How a message is to be answered (A2A 1.0 §3.2.2). */
export interface SendMessageConfiguration {
  /** Media types that the client can read. Default: any. */
  readonly acceptedOutputModes?: readonly string[];
  /** A webhook for the task of this message. */
  readonly taskPushNotificationConfig?: TaskPushNotificationConfig;
  /** Most messages of the history in the answer (A2A 1.0 §3.2.4). 0: none. Default: no limit. */
  readonly historyLength?: number;
  /** Whether to answer as soon as the task exists. Default: false, the answer waits for a terminal or interrupted state. */
  readonly returnImmediately?: boolean;
}

/** The request of `SendMessage` and `SendStreamingMessage` (A2A 1.0 §3.2.1). */
export interface SendMessageRequest {
  /** The `tenant` of the interface that is called, where it has one. */
  readonly tenant?: string;
  /** The message. */
  readonly message: Message;
  /** How it is to be answered. */
  readonly configuration?: SendMessageConfiguration;
  /** Anything else about this request. */
  readonly metadata?: JsonObject;
}

/** The request of `GetTask` (A2A 1.0 §3.1.3). */
export interface GetTaskRequest {
  /** The `tenant` of the interface that is called, where it has one. */
  readonly tenant?: string;
  /** The task. */
  readonly id: string;
  /** Most messages of the history in the answer (A2A 1.0 §3.2.4). 0: none. Default: no limit. */
  readonly historyLength?: number;
}

/** The request of `ListTasks` (A2A 1.0 §3.1.4). What is absent filters nothing. */
export interface ListTasksRequest {
  /** The `tenant` of the interface that is called, where it has one. */
  readonly tenant?: string;
  /** Only tasks of this conversation. */
  readonly contextId?: string;
  /** Only tasks in this state. */
  readonly status?: TaskState;
  /** Most tasks on the page, 1 to 100. Default 50. */
  readonly pageSize?: number;
  /** `nextPageToken` of the page before. Absent: the first page. */
  readonly pageToken?: string;
  /** Most messages of each task's history (A2A 1.0 §3.2.4). 0: none. */
  readonly historyLength?: number;
  /** Only tasks whose status was set at this time or later. */
  readonly statusTimestampAfter?: Timestamp;
  /** Whether tasks carry their artifacts. Default false. */
  readonly includeArtifacts?: boolean;
}

/** A page of tasks (A2A 1.0 §3.1.4). Every member is always present. */
export interface ListTasksResponse {
  /** The tasks, those with the newest status first. */
  readonly tasks: readonly Task[];
  /** The `pageToken` of the next page. `""` on the last page. */
  readonly nextPageToken: string;
  /** Most tasks on this page. */
  readonly pageSize: number;
  /** How many tasks match on all pages together. */
  readonly totalSize: number;
}

/** The request of `CancelTask` (A2A 1.0 §3.1.5). */
export interface CancelTaskRequest {
  /** The `tenant` of the interface that is called, where it has one. */
  readonly tenant?: string;
  /** The task. */
  readonly id: string;
  /** Anything else about this request. */
  readonly metadata?: JsonObject;
}

/** The request of `SubscribeToTask` (A2A 1.0 §3.1.6). */
export interface SubscribeToTaskRequest {
  /** The `tenant` of the interface that is called, where it has one. */
  readonly tenant?: string;
  /** The task. */
  readonly id: string;
}

/** The request of `GetTaskPushNotificationConfig` (A2A 1.0 §3.1.8). */
export interface GetTaskPushNotificationConfigRequest {
  /** The `tenant` of the interface that is called, where it has one. */
  readonly tenant?: string;
  /** The task that the configuration belongs to. */
  readonly taskId: string;
  /** The configuration. */
  readonly id: string;
}

/** The request of `DeleteTaskPushNotificationConfig` (A2A 1.0 §3.1.10). */
export interface DeleteTaskPushNotificationConfigRequest {
  /** The `tenant` of the interface that is called, where it has one. */
  readonly tenant?: string;
  /** The task that the configuration belongs to. */
  readonly taskId: string;
  /** The configuration. */
  readonly id: string;
}

/** The request of `ListTaskPushNotificationConfigs` (A2A 1.0 §3.1.9). */
export interface ListTaskPushNotificationConfigsRequest {
  /** The `tenant` of the interface that is called, where it has one. */
  readonly tenant?: string;
  /** The task. */
  readonly taskId: string;
  /** Most configurations on the page. Default: the server's choice. */
  readonly pageSize?: number;
  /** `nextPageToken` of the page before. Absent: the first page. */
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
export interface GetExtendedAgentCardRequest {
  /** The `tenant` of the interface that is called, where it has one. */
  readonly tenant?: string;
}

/** The answer of an operation that returns nothing, such as `DeleteTaskPushNotificationConfig`. */
export interface Empty {
  readonly [key: string]: never;
}
