import {
  type AgentCard,
  type CancelTaskRequest,
  type DeleteTaskPushNotificationConfigRequest,
  type Empty,
  type GetExtendedAgentCardRequest,
  type GetTaskPushNotificationConfigRequest,
  type GetTaskRequest,
  type JsonObject,
  type ListTaskPushNotificationConfigsRequest,
  type ListTaskPushNotificationConfigsResponse,
  type ListTasksRequest,
  type ListTasksResponse,
  type SendMessageRequest,
  type SendMessageResponse,
  type StreamResponse,
  type SubscribeToTaskRequest,
  type Task,
  type TaskPushNotificationConfig,
  isTerminal,
  type TaskState,
} from "../model/index.ts";
import { isObject } from "../model/schema.ts";

/* The operations of the protocol by name (A2A 1.0 §3.1, §5.3), each with its request and its response, and when streams end. */

/** Operations with one response. */
export interface UnaryOperations {
  /** Sends a message (A2A 1.0 §3.1.1). */
  SendMessage: { request: SendMessageRequest; response: SendMessageResponse };
  /** Reads a task (A2A 1.0 §3.1.3). */
  GetTask: { request: GetTaskRequest; response: Task };
  /** Lists the tasks of the caller (A2A 1.0 §3.1.4). */
  ListTasks: { request: ListTasksRequest; response: ListTasksResponse };
  /** Cancels a task (A2A 1.0 §3.1.5). */
  CancelTask: { request: CancelTaskRequest; response: Task };
  /** Adds a webhook to a task (A2A 1.0 §3.1.7). */
  CreateTaskPushNotificationConfig: { request: TaskPushNotificationConfig; response: TaskPushNotificationConfig };
  /** Reads a webhook of a task (A2A 1.0 §3.1.8). */
  GetTaskPushNotificationConfig: {
    request: GetTaskPushNotificationConfigRequest;
    response: TaskPushNotificationConfig;
  };
  /** Lists the webhooks of a task (A2A 1.0 §3.1.9). */
  ListTaskPushNotificationConfigs: {
    request: ListTaskPushNotificationConfigsRequest;
    response: ListTaskPushNotificationConfigsResponse;
  };
  /** Deletes a webhook of a task (A2A 1.0 §3.1.10). */
  DeleteTaskPushNotificationConfig: { request: DeleteTaskPushNotificationConfigRequest; response: Empty };
  /** Reads the card for authenticated callers (A2A 1.0 §3.1.11). */
  GetExtendedAgentCard: { request: GetExtendedAgentCardRequest; response: AgentCard };
  /** A method of an extension (A2A 1.0 §4.6), by its name in `methods`. Its request may have the protocol's `tenant` (§8.3.2). */
  [method: MethodName]: { request: MethodRequest; response: JsonObject };
}

/** The name of a method of an extension. No operation of the protocol has a slash in its name. */
export type MethodName = `${string}/${string}`;

/** The request of a method of an extension: a JSON object. */
export type MethodRequest = JsonObject & {
  /** The routing label of the protocol (§8.3.2). The extension does not get it. */
  readonly tenant?: string;
};

/** Operations with a stream of responses. */
export interface StreamOperations {
  /** Sends a message and follows its task (A2A 1.0 §3.1.2). */
  SendStreamingMessage: { request: SendMessageRequest; response: StreamResponse };
  /** Follows a task that exists (A2A 1.0 §3.1.6). */
  SubscribeToTask: { request: SubscribeToTaskRequest; response: StreamResponse };
}

/** Every operation. */
export interface Operations extends UnaryOperations, StreamOperations {}

/** Name of an operation of the protocol. */
export type CoreName = Exclude<OperationName, MethodName>;
/** Name of an operation with one response. */
export type UnaryName = Extract<keyof UnaryOperations, string>;
/** Name of an operation with a stream of responses. */
export type StreamName = keyof StreamOperations;
/** Name of an operation. */
export type OperationName = Extract<keyof Operations, string>;

/** Whether a name is an operation of the protocol. */
export function isCoreName(name: string): name is CoreName {
  return Object.hasOwn(operations, name);
}

/** Whether a request sends a message, by its operation. */
export function isSend(operation: OperationName, request: unknown): request is SendMessageRequest {
  return (operation === "SendMessage" || operation === "SendStreamingMessage") && isObject(request);
}

/** Whether a response is a card, by its operation. */
export function isCardOf(operation: OperationName, response: unknown): response is AgentCard {
  return operation === "GetExtendedAgentCard" && isObject(response);
}

/** Facts about an operation; `undefined` for a method of an extension. */
export function coreInfo(operation: OperationName): OperationInfo | undefined {
  const table: OperationTable = operations;
  return table[operation];
}

/** Whether an operation is a method of an extension. */
export function isMethod(operation: OperationName): operation is MethodName {
  return operation.includes("/");
}

/** A method of an extension on the wire, for the bindings of servers and clients. Created by `methodRoute()`. */
export interface MethodRoute {
  /** The name of the operation. */
  readonly name: MethodName;
  /** Its method of JSON-RPC. */
  readonly jsonrpc: string;
  /** Its HTTP method and its path below the base, in the syntax of `RestRoute.path`. */
  readonly rest: { readonly method: "GET" | "POST"; readonly path: `/${string}` };
  /** Its path over gRPC. Request and response are a `google.protobuf.Struct`. */
  readonly grpc: `/${string}/${string}`;
  /** Whether a client may repeat it. */
  readonly idempotent: boolean;
}

/** Facts about an operation, for bindings. */
export interface OperationInfo {
  /** Whether it responds with a stream. */
  readonly stream: boolean;
  /** Whether the operation is idempotent, so that a client may retry it (A2A 1.0 §3.3.1). */
  readonly idempotent: boolean;
}

/** The operations that a binding serves, by name. An extension that adds methods adds rows to it. */
export type OperationTable = Readonly<Record<string, OperationInfo>>;

const safe: OperationInfo = { stream: false, idempotent: true };
const unsafe: OperationInfo = { stream: false, idempotent: false };

/** The operations of A2A 1.0. */
export const operations: Readonly<Record<CoreName, OperationInfo>> = {
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

/** The state in an event; `undefined` if the event has none. */
export function stateOf(event: StreamResponse): TaskState | undefined {
  return event.statusUpdate?.status.state ?? event.task?.status.state;
}

/**
 * Whether a stream ends with this event: at a message and a terminal state (A2A 1.0 §3.1.2), and after a send also at INPUT_REQUIRED
 * (§11.7). At AUTH_REQUIRED it stays open, because the authorization may come from elsewhere (§7.6.1).
 */
export function closesAfter(event: StreamResponse, operation: StreamName): boolean {
  if (event.message !== undefined) return true;
  const state = stateOf(event);
  if (state === undefined) return false;
  return isTerminal(state) || (operation === "SendStreamingMessage" && state === "TASK_STATE_INPUT_REQUIRED");
}

/** Ids that a request names. They may not exist. */
interface CalledResource {
  readonly taskId?: string;
  readonly contextId?: string;
  /** The tasks that a message refers to. */
  readonly referenceTaskIds?: readonly string[];
  /** The webhook configuration. */
  readonly configId?: string;
}

/** The ids that a request names. */
export function resourceOf(operation: OperationName, request: unknown): CalledResource {
  if (isSend(operation, request)) {
    const { taskId, contextId, referenceTaskIds } = request.message;
    return {
      ...(taskId !== undefined && { taskId }),
      ...(contextId !== undefined && { contextId }),
      ...(referenceTaskIds !== undefined && { referenceTaskIds }),
    };
  }
  const { id, taskId, contextId }: Readonly<Record<string, unknown>> = isObject(request) ? request : {};
  switch (operation) {
    case "GetTask":
    case "CancelTask":
    case "SubscribeToTask":
      return typeof id === "string" ? { taskId: id } : {};
    case "CreateTaskPushNotificationConfig":
    case "GetTaskPushNotificationConfig":
    case "DeleteTaskPushNotificationConfig":
      return textsOf({ taskId, configId: id });
    default:
      return textsOf({ taskId, contextId });
  }
}

function textsOf(members: { readonly [Name in keyof CalledResource]?: unknown }): Pick<
  CalledResource,
  "taskId" | "contextId" | "configId"
> {
  const { taskId, contextId, configId } = members;
  return {
    ...(typeof taskId === "string" && { taskId }),
    ...(typeof contextId === "string" && { contextId }),
    ...(typeof configId === "string" && { configId }),
  };
}
