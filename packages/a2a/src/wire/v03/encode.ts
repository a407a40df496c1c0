import type { OperationName, Operations, Reply, StreamItem } from "../../protocol/index.ts";
import { encodeCard } from "./card.ts";
import { checked, noList } from "./decode.ts";
import { fromEvent, fromPushConfig, fromSendRequest, fromTask } from "./from-model.ts";
import {
  messageSendParams03,
  pushConfigDeleteParams03,
  pushConfigGetParams03,
  taskIdParams03,
  taskPushNotificationConfig03,
  taskQueryParams03,
} from "./schemas.ts";

type Writers<Part extends "request" | "response"> = {
  readonly [Name in OperationName]: (value: Operations[Name][Part]) => unknown;
};

/** Parameters with the members that 0.3 knows and no others: a tenant is one of those. */
const requests: Writers<"request"> = {
  SendMessage: (request) => checked(messageSendParams03, fromSendRequest(request), "copy"),
  SendStreamingMessage: (request) => checked(messageSendParams03, fromSendRequest(request), "copy"),
  GetTask: (request) => checked(taskQueryParams03, request, "copy"),
  ListTasks: noList,
  CancelTask: (request) => checked(taskIdParams03, request, "copy"),
  SubscribeToTask: (request) => checked(taskIdParams03, request, "copy"),
  CreateTaskPushNotificationConfig: (config) => checked(taskPushNotificationConfig03, fromPushConfig(config), "copy"),
  GetTaskPushNotificationConfig: ({ taskId, id }) =>
    checked(pushConfigGetParams03, { id: taskId, pushNotificationConfigId: id }, "copy"),
  ListTaskPushNotificationConfigs: ({ taskId }) => checked(taskIdParams03, { id: taskId }, "copy"),
  DeleteTaskPushNotificationConfig: ({ taskId, id }) =>
    checked(pushConfigDeleteParams03, { id: taskId, pushNotificationConfigId: id }, "copy"),
  // The method takes none (0.3 §7.10).
  GetExtendedAgentCard: () => undefined,
};

const responses: Writers<"response"> = {
  SendMessage: fromEvent,
  SendStreamingMessage: fromEvent,
  GetTask: fromTask,
  ListTasks: noList,
  CancelTask: fromTask,
  SubscribeToTask: fromEvent,
  CreateTaskPushNotificationConfig: fromPushConfig,
  GetTaskPushNotificationConfig: fromPushConfig,
  ListTaskPushNotificationConfigs: ({ configs = [] }) => configs.map(fromPushConfig),
  DeleteTaskPushNotificationConfig: () => null,
  GetExtendedAgentCard: encodeCard,
};

/** Throws `InvalidParams` for what a server would refuse, `UnsupportedOperation` for what 0.3 does not have. */
export function encodeRequest<Name extends OperationName>(
  operation: Name,
  request: Operations[Name]["request"],
): unknown {
  return requests[operation](request);
}

export function responseOf<Name extends OperationName>(
  operation: Name,
  reply: Reply<Operations[Name]["response"]>,
): unknown {
  return responses[operation](reply.payload.read());
}

export function encodeResponse<Name extends OperationName>(
  operation: Name,
  reply: Reply<Operations[Name]["response"]>,
): string {
  return JSON.stringify(responseOf(operation, reply));
}

export function eventOf(item: StreamItem): unknown {
  return fromEvent(item.payload.read());
}

export function encodeEvent(item: StreamItem): string {
  return JSON.stringify(fromEvent(item.payload.read()));
}
