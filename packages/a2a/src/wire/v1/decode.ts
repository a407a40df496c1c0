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

type RequestSchemas = { readonly [Name in OperationName]: Schema<Operations[Name]["request"]> };
type ResponseSchemas = { readonly [Name in OperationName]: Schema<Operations[Name]["response"]> };

const requests: RequestSchemas = {
  SendMessage: sendMessageRequestSchema,
  SendStreamingMessage: sendMessageRequestSchema,
  GetTask: getTaskRequestSchema,
  ListTasks: listTasksRequestSchema,
  CancelTask: cancelTaskRequestSchema,
  SubscribeToTask: subscribeToTaskRequestSchema,
  CreateTaskPushNotificationConfig: taskPushNotificationConfigSchema,
  GetTaskPushNotificationConfig: getTaskPushNotificationConfigRequestSchema,
  ListTaskPushNotificationConfigs: listTaskPushNotificationConfigsRequestSchema,
  DeleteTaskPushNotificationConfig: deleteTaskPushNotificationConfigRequestSchema,
  GetExtendedAgentCard: getExtendedAgentCardRequestSchema,
};

const responses: ResponseSchemas = {
  SendMessage: sendMessageResponseSchema,
  SendStreamingMessage: streamResponseSchema,
  GetTask: taskSchema,
  ListTasks: listTasksResponseSchema,
  CancelTask: taskSchema,
  SubscribeToTask: streamResponseSchema,
  CreateTaskPushNotificationConfig: taskPushNotificationConfigSchema,
  GetTaskPushNotificationConfig: taskPushNotificationConfigSchema,
  ListTaskPushNotificationConfigs: listTaskPushNotificationConfigsResponseSchema,
  DeleteTaskPushNotificationConfig: emptySchema,
  GetExtendedAgentCard: agentCardSchema,
};

/** In mode `request` for what came in, `copy` for what is about to go out. */
export function decodeRequest<Name extends OperationName>(
  operation: Name,
  value: unknown,
  mode: CheckMode,
): Operations[Name]["request"] {
  // No parameters at all, as in JSON-RPC without `params`, are a request with nothing set.
  const checked = check(requests[operation] as Schema<Operations[Name]["request"]>, value ?? {}, mode);
  if (checked.ok) return checked.value;
  throw invalidParams(checked.violations);
}

export function decodeResponse<Name extends OperationName>(
  operation: Name,
  value: unknown,
): Operations[Name]["response"] {
  // Some peers answer a deletion with `null`, or with nothing.
  const answer = operation === "DeleteTaskPushNotificationConfig" ? (value ?? {}) : value;
  return decodeAnswer(responses[operation] as Schema<Operations[Name]["response"]>, answer, "answer");
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
