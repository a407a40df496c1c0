import {
  A2AError,
  emptySchema,
  getExtendedAgentCardRequestSchema,
  type Schema,
  type SendMessageResponse,
  type StreamResponse,
} from "../../model/index.ts";
import { list } from "../../model/schema.ts";
import type { OperationName, Operations, Reply, StreamItem } from "../../protocol/index.ts";
import { answered, checked } from "../codec.ts";
import {
  fromEvent,
  fromPushConfig,
  fromSendRequest,
  fromTask,
  toEvent,
  toPushConfig,
  toSendRequest,
  toTask,
} from "./conversion.ts";
import { decodeCard } from "./decode-card.ts";
import { encodeCard } from "./encode-card.ts";
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

/** Requests, responses and events of 0.3 over JSON-RPC. */

type Readers<Part extends "request" | "response"> = {
  readonly [Name in OperationName]: (value: unknown) => Operations[Name][Part];
};
type Writers<Part extends "request" | "response"> = {
  readonly [Name in OperationName]: (value: Operations[Name][Part]) => unknown;
};

const requestReaders: Readers<"request"> = {
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
    // `adapt` finds a config where none is named.
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

const responseReaders: Readers<"response"> = {
  SendMessage: readSendResult,
  SendStreamingMessage: decodeEvent,
  GetTask: (value) => toTask(answered(task03, value, "answer")),
  ListTasks: noList,
  CancelTask: (value) => toTask(answered(task03, value, "answer")),
  SubscribeToTask: decodeEvent,
  CreateTaskPushNotificationConfig: (value) => toPushConfig(answered(taskPushNotificationConfig03, value, "answer")),
  GetTaskPushNotificationConfig: (value) => toPushConfig(answered(taskPushNotificationConfig03, value, "answer")),
  // Some servers answer with nothing where there is no config.
  ListTaskPushNotificationConfigs: (value) => ({
    configs: answered(configs03, value ?? [], "answer").map(toPushConfig),
  }),
  DeleteTaskPushNotificationConfig: (value) => answered(emptySchema, value ?? {}, "answer"),
  GetExtendedAgentCard: decodeCard,
};

/** In 0.3 only the other bindings have a list of tasks (§3.5.6). */
function noList(): never {
  throw new A2AError("UnsupportedOperation", "A2A 0.3 has no list of tasks over JSON-RPC");
}

export function decodeRequest<Name extends OperationName>(
  operation: Name,
  value: unknown,
): Operations[Name]["request"] {
  return requestReaders[operation](value);
}

export function decodeResponse<Name extends OperationName>(
  operation: Name,
  value: unknown,
): Operations[Name]["response"] {
  return responseReaders[operation](value);
}

export function decodeEvent(value: unknown): StreamResponse {
  return toEvent(answered(event03, value, "event"));
}

/** Whether an event says that it is the last one of its stream. */
export function endsStream(value: unknown): boolean {
  return typeof value === "object" && value !== null && "final" in value && value.final === true;
}

function readSendResult(value: unknown): SendMessageResponse {
  const { task, message } = decodeEvent(value);
  if (task !== undefined) return { task };
  if (message !== undefined) return { message };
  throw new A2AError("InvalidResponse", "The peer's answer is neither a task nor a message");
}

/** Checks the parameters of a request. A request without parameters is an empty one. */
export function asked<T>(schema: Schema<T>, value: unknown): T {
  return checked(schema, value ?? {}, "request");
}

/** Parameters without members that 0.3 does not know, such as the tenant. */
const requestWriters: Writers<"request"> = {
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
  // The method has no parameters (0.3 §7.10).
  GetExtendedAgentCard: () => undefined,
};

const responseWriters: Writers<"response"> = {
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

/** Throws `InvalidParams` for what a server would refuse, and `UnsupportedOperation` for what 0.3 does not have. */
export function encodeRequest<Name extends OperationName>(
  operation: Name,
  request: Operations[Name]["request"],
): unknown {
  return requestWriters[operation](request);
}

export function responseOf<Name extends OperationName>(
  operation: Name,
  reply: Reply<Operations[Name]["response"]>,
): unknown {
  return responseWriters[operation](reply.payload.read());
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
