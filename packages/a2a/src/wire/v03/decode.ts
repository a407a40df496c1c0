import {
  A2AError,
  check,
  emptySchema,
  getExtendedAgentCardRequestSchema,
  invalidParams,
  withFields,
  type CheckMode,
  type Schema,
  type SendMessageResponse,
  type StreamResponse,
} from "../../model/index.ts";
import { list } from "../../model/schema.ts";
import type { OperationName, Operations } from "../../protocol/index.ts";
import { decodeCard } from "./card.ts";
import {
  event03,
  messageSendParams03,
  pushConfigDeleteParams03,
  pushConfigGetParams03,
  task03,
  taskIdParams03,
  taskPushNotificationConfig03,
  taskQueryParams03,
} from "./schemas.ts";
import { toEvent, toPushConfig, toSendRequest, toTask } from "./to-model.ts";

type Readers<Part extends "request" | "response"> = {
  readonly [Name in OperationName]: (value: unknown) => Operations[Name][Part];
};

const requests: Readers<"request"> = {
  SendMessage: (value) => toSendRequest(asked(messageSendParams03, value)),
  SendStreamingMessage: (value) => toSendRequest(asked(messageSendParams03, value)),
  GetTask: (value) => {
    const { metadata: _, ...request } = asked(taskQueryParams03, value);
    return request;
  },
  ListTasks: noList,
  CancelTask: (value) => asked(taskIdParams03, value),
  SubscribeToTask: (value) => ({ id: asked(taskIdParams03, value).id }),
  CreateTaskPushNotificationConfig: (value) => toPushConfig(asked(taskPushNotificationConfig03, value)),
  GetTaskPushNotificationConfig: (value) => {
    const { id, pushNotificationConfigId } = asked(pushConfigGetParams03, value);
    // Which one is for `adapt` to find.
    return { taskId: id, id: pushNotificationConfigId ?? "" };
  },
  ListTaskPushNotificationConfigs: (value) => ({ taskId: asked(taskIdParams03, value).id }),
  DeleteTaskPushNotificationConfig: (value) => {
    const { id, pushNotificationConfigId } = asked(pushConfigDeleteParams03, value);
    return { taskId: id, id: pushNotificationConfigId };
  },
  GetExtendedAgentCard: (value) => asked(getExtendedAgentCardRequestSchema, value),
};

const configs03 = list(taskPushNotificationConfig03);

const responses: Readers<"response"> = {
  SendMessage: readSendResult,
  SendStreamingMessage: decodeEvent,
  GetTask: (value) => toTask(answered(task03, value, "answer")),
  ListTasks: noList,
  CancelTask: (value) => toTask(answered(task03, value, "answer")),
  SubscribeToTask: decodeEvent,
  CreateTaskPushNotificationConfig: (value) => toPushConfig(answered(taskPushNotificationConfig03, value, "answer")),
  GetTaskPushNotificationConfig: (value) => toPushConfig(answered(taskPushNotificationConfig03, value, "answer")),
  // Some peers have nothing to say where there is none.
  ListTaskPushNotificationConfigs: (value) => ({
    configs: answered(configs03, value ?? [], "answer").map(toPushConfig),
  }),
  DeleteTaskPushNotificationConfig: (value) => answered(emptySchema, value ?? {}, "answer"),
  GetExtendedAgentCard: decodeCard,
};

/** The list of tasks came with the other bindings of 0.3 (§3.5.6). */
export function noList(): never {
  throw new A2AError("UnsupportedOperation", "A2A 0.3 has no list of tasks over JSON-RPC");
}

export function decodeRequest<Name extends OperationName>(
  operation: Name,
  value: unknown,
): Operations[Name]["request"] {
  return requests[operation](value);
}

export function decodeResponse<Name extends OperationName>(
  operation: Name,
  value: unknown,
): Operations[Name]["response"] {
  return responses[operation](value);
}

export function decodeEvent(value: unknown): StreamResponse {
  return toEvent(answered(event03, value, "event"));
}

/** Whether a server says with this event that it ends the stream. */
export function endsStream(value: unknown): boolean {
  return typeof value === "object" && value !== null && "final" in value && value.final === true;
}

function readSendResult(value: unknown): SendMessageResponse {
  const { task, message } = decodeEvent(value);
  if (task !== undefined) return { task };
  if (message !== undefined) return { message };
  throw new A2AError("InvalidResponse", "The peer's answer is neither a task nor a message");
}

/** No parameters at all are parameters with nothing set. */
export function asked<T>(schema: Schema<T>, value: unknown): T {
  return checked(schema, value ?? {}, "request");
}

/** The parameters as they may go out. */
export function checked<T>(schema: Schema<T>, value: unknown, mode: CheckMode): T {
  const result = check(schema, value, mode);
  if (result.ok) return result.value;
  throw invalidParams(result.violations);
}

export function answered<T>(schema: Schema<T>, value: unknown, what: string): T {
  const result = check(schema, value, "answer");
  if (result.ok) return result.value;
  throw new A2AError("InvalidResponse", withFields(`The peer's ${what} is not valid`, result.violations), {
    fields: result.violations,
  });
}
