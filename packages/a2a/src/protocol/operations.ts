import type {
  AgentCard,
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
  SendMessageRequest,
  SendMessageResponse,
  StreamResponse,
  SubscribeToTaskRequest,
  Task,
  TaskPushNotificationConfig,
} from "../model/index.ts";

/** The operations of the protocol (A2A 1.0 §3.1, §5.3), by name, with what goes in and what comes out. */

export interface UnaryOperations {
  SendMessage: { request: SendMessageRequest; response: SendMessageResponse };
  GetTask: { request: GetTaskRequest; response: Task };
  ListTasks: { request: ListTasksRequest; response: ListTasksResponse };
  CancelTask: { request: CancelTaskRequest; response: Task };
  CreateTaskPushNotificationConfig: { request: TaskPushNotificationConfig; response: TaskPushNotificationConfig };
  GetTaskPushNotificationConfig: {
    request: GetTaskPushNotificationConfigRequest;
    response: TaskPushNotificationConfig;
  };
  ListTaskPushNotificationConfigs: {
    request: ListTaskPushNotificationConfigsRequest;
    response: ListTaskPushNotificationConfigsResponse;
  };
  DeleteTaskPushNotificationConfig: { request: DeleteTaskPushNotificationConfigRequest; response: Empty };
  GetExtendedAgentCard: { request: GetExtendedAgentCardRequest; response: AgentCard };
}

export interface StreamOperations {
  SendStreamingMessage: { request: SendMessageRequest; response: StreamResponse };
  SubscribeToTask: { request: SubscribeToTaskRequest; response: StreamResponse };
}

export interface Operations extends UnaryOperations, StreamOperations {}

export type UnaryName = keyof UnaryOperations;
export type StreamName = keyof StreamOperations;
export type OperationName = keyof Operations;

export interface OperationInfo {
  readonly stream: boolean;
  /** Whether the same call twice does what one does, so that a client may repeat it blindly (§3.3.1). */
  readonly idempotent: boolean;
}

/** The table that composition hands to every binding; a method extension adds its rows here, and nowhere else. */
export type OperationTable = Readonly<Record<string, OperationInfo>>;

const safe: OperationInfo = { stream: false, idempotent: true };
const unsafe: OperationInfo = { stream: false, idempotent: false };

export const operations: Readonly<Record<OperationName, OperationInfo>> = {
  SendMessage: unsafe,
  SendStreamingMessage: { stream: true, idempotent: false },
  GetTask: safe,
  ListTasks: safe,
  CancelTask: unsafe,
  SubscribeToTask: { stream: true, idempotent: true },
  CreateTaskPushNotificationConfig: unsafe,
  GetTaskPushNotificationConfig: safe,
  ListTaskPushNotificationConfigs: safe,
  DeleteTaskPushNotificationConfig: safe,
  GetExtendedAgentCard: safe,
};
