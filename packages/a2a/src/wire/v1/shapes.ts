import {
  A2AError,
  agentCardSchema,
  cancelTaskRequestSchema,
  check,
  deleteTaskPushNotificationConfigRequestSchema,
  emptySchema,
  getExtendedAgentCardRequestSchema,
  getTaskPushNotificationConfigRequestSchema,
  getTaskRequestSchema,
  invalidParams,
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
  withFields,
  type AgentCard,
  type CheckMode,
  type Schema,
  type StreamResponse,
} from "../../model/index.ts";
import type { OperationName, Operations } from "../../protocol/index.ts";

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
  const checked = check(schemas[operation][0], value ?? {}, mode);
  if (checked.ok) return checked.value;
  throw invalidParams(checked.violations);
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
  return decodeAnswer(schemas[operation][1], answer, "answer");
}

export function decodeEvent(value: unknown): StreamResponse {
  return decodeAnswer(streamResponseSchema, value, "event");
}

export function decodeCard(value: unknown): AgentCard {
  return decodeAnswer(agentCardSchema, value, "agent card");
}

function decodeAnswer<T>(schema: Schema<T>, value: unknown, what: string): T {
  const checked = check(schema, value, "answer");
  if (checked.ok) return checked.value;
  throw new A2AError("InvalidResponse", withFields(`The peer's ${what} is not valid`, checked.violations), {
    fields: checked.violations,
  });
}
