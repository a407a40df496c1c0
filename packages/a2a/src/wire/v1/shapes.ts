import {
  agentCardSchema,
  cancelTaskRequestSchema,
  deleteTaskPushNotificationConfigRequestSchema,
  emptySchema,
  getExtendedAgentCardRequestSchema,
  getTaskPushNotificationConfigRequestSchema,
  getTaskRequestSchema,
  listTaskPushNotificationConfigsRequestSchema,
  listTaskPushNotificationConfigsResponseSchema,
  listTasksRequestSchema,
  listTasksResponseSchema,
  sendMessageRequestSchema,
  sendMessageResponseSchema,
  streamResponseSchema,
  subscribeToTaskRequestSchema,
  taskPushNotificationConfigSchema,
  taskSchema,
  type AgentCard,
  type CheckMode,
  type Schema,
  type StreamResponse,
} from "../../model/index.ts";
import type { OperationName, Operations } from "../../protocol/index.ts";
import { answered, checked } from "../codec.ts";

/** Schemas of requests and responses, by operation. */
const schemas: {
  readonly [Name in OperationName]: readonly [
    Schema<Operations[Name]["request"]>,
    Schema<Operations[Name]["response"]>,
  ];
} = {
  SendMessage: [sendMessageRequestSchema, sendMessageResponseSchema],
  SendStreamingMessage: [sendMessageRequestSchema, streamResponseSchema],
  GetTask: [getTaskRequestSchema, taskSchema],
  ListTasks: [listTasksRequestSchema, listTasksResponseSchema],
  CancelTask: [cancelTaskRequestSchema, taskSchema],
  SubscribeToTask: [subscribeToTaskRequestSchema, streamResponseSchema],
  CreateTaskPushNotificationConfig: [taskPushNotificationConfigSchema, taskPushNotificationConfigSchema],
  GetTaskPushNotificationConfig: [getTaskPushNotificationConfigRequestSchema, taskPushNotificationConfigSchema],
  ListTaskPushNotificationConfigs: [
    listTaskPushNotificationConfigsRequestSchema,
    listTaskPushNotificationConfigsResponseSchema,
  ],
  DeleteTaskPushNotificationConfig: [deleteTaskPushNotificationConfigRequestSchema, emptySchema],
  GetExtendedAgentCard: [getExtendedAgentCardRequestSchema, agentCardSchema],
};

/** Checks the request of an operation. Throws `InvalidParams`. A request without parameters is an empty one. */
export function decodeRequest<Name extends OperationName>(
  operation: Name,
  value: unknown,
  mode: CheckMode,
): Operations[Name]["request"] {
  return checked(schemas[operation][0], value ?? {}, mode);
}

/**
 * The request as it is sent: a copy without members that this version does not know, because some servers refuse those.
 * Throws `InvalidParams` for what a server would refuse.
 */
export function encodeRequest<Name extends OperationName>(
  operation: Name,
  request: Operations[Name]["request"],
): Operations[Name]["request"] {
  return decodeRequest(operation, request, "copy");
}

export function decodeResponse<Name extends OperationName>(
  operation: Name,
  value: unknown,
): Operations[Name]["response"] {
  // Some servers answer a deletion with `null`, or with nothing.
  const answer = operation === "DeleteTaskPushNotificationConfig" ? (value ?? {}) : value;
  return answered(schemas[operation][1], answer, "answer");
}

export function decodeEvent(value: unknown): StreamResponse {
  return answered(streamResponseSchema, value, "event");
}

export function decodeCard(value: unknown): AgentCard {
  return answered(agentCardSchema, value, "agent card");
}
