import {
  emptySchema,
  getExtendedAgentCardRequestSchema,
  invalidParams,
  listTasksRequestSchema,
  listTasksResponseSchema,
  type ListTasksRequest,
  type SendMessageResponse,
  type StreamResponse,
  type TaskPushNotificationConfig,
} from "../../model/index.ts";
import { list } from "../../model/schema.ts";
import type { OperationName, Operations, Reply, StreamItem } from "../../protocol/index.ts";
import { answered, checked, type Shapes } from "../codec.ts";
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
import { encodeCard, toProtoCard, toRestCard } from "./encode-card.ts";
import {
  idsIn,
  ofProtoEvent,
  ofProtoSend,
  ofProtoTask,
  pushNameOf,
  toProtoEvent,
  toProtoPush,
  toProtoSend,
  toProtoTask,
} from "./proto-json.ts";
import {
  protoQuery,
  protoSendRequest,
  protoStreamResponse,
  protoTask,
  protoTaskPushConfig,
  type ProtoTaskPushConfig,
} from "./proto-schemas.ts";
import { asked } from "./shapes.ts";

/**
 * Requests, responses and events of 0.3 in ProtoJSON. Responses and events are the same over REST and gRPC. A request names its
 * task in the path over REST, and by a resource name over gRPC. A server reads both.
 */

type Fields = Readonly<Record<string, unknown>>;
type Values<Part extends "request" | "response"> = {
  readonly [Name in OperationName]: (value: Operations[Name][Part]) => unknown;
};
type Readers<Part extends "request" | "response"> = {
  readonly [Name in OperationName]: (value: unknown) => Operations[Name][Part];
};

const readers: Readers<"request"> = {
  SendMessage: (value) => toSendRequest(ofProtoSend(asked(protoSendRequest, value))),
  SendStreamingMessage: (value) => toSendRequest(ofProtoSend(asked(protoSendRequest, value))),
  GetTask(value) {
    const { id, historyLength } = asked(protoQuery, withTask(value));
    return { id, ...(historyLength !== undefined && historyLength !== 0 && { historyLength }) };
  },
  // The text lists whole tasks. In 1.0 their artifacts have to be asked for.
  ListTasks: (value) =>
    asked(listTasksRequestSchema, {
      includeArtifacts: true,
      ...withState(value, "TASK_STATE_CANCELLED", "TASK_STATE_CANCELED"),
    }),
  CancelTask: (value) => ({ id: asked(protoQuery, withTask(value)).id }),
  SubscribeToTask: (value) => ({ id: asked(protoQuery, withTask(value)).id }),
  CreateTaskPushNotificationConfig(value) {
    const { taskId } = configIn(value, "parent");
    const { configId, config_id: protoId, config } = fieldsOf(value);
    const given = asked(protoTaskPushConfig, config ?? value);
    const id = given.pushNotificationConfig.id ?? textOf(configId) ?? textOf(protoId);
    const pushNotificationConfig = { ...(id !== undefined && { id }), ...given.pushNotificationConfig };
    return toPushConfig({ taskId, pushNotificationConfig });
  },
  GetTaskPushNotificationConfig(value) {
    // `adapt` finds a config where none is named.
    const { taskId, id = "" } = configIn(value, "name");
    return { taskId, id };
  },
  ListTaskPushNotificationConfigs: (value) => ({ taskId: configIn(value, "parent").taskId }),
  DeleteTaskPushNotificationConfig(value) {
    const { taskId, id } = configIn(value, "name");
    if (id === undefined) throw invalidParams([{ field: "name", description: "names no config" }]);
    return { taskId, id };
  },
  GetExtendedAgentCard: (value) => asked(getExtendedAgentCardRequestSchema, value),
};

/** Requests over REST. They contain the fields of the path too: the transport takes them out. */
const restWriters: Values<"request"> = {
  // Without a configuration the call does not wait. In 1.0 it is the other way round.
  SendMessage: (request) =>
    checked(protoSendRequest, toProtoSend(fromSendRequest({ configuration: {}, ...request })), "copy"),
  SendStreamingMessage: (request) => checked(protoSendRequest, toProtoSend(fromSendRequest(request)), "copy"),
  GetTask: (request) => checked(protoQuery, request, "copy"),
  ListTasks: (request) =>
    withState(checked(listTasksRequestSchema, request, "copy"), "TASK_STATE_CANCELED", "TASK_STATE_CANCELLED"),
  CancelTask: ({ id }) => checked(protoQuery, { id }, "copy"),
  SubscribeToTask: ({ id }) => checked(protoQuery, { id }, "copy"),
  // The whole request, as in gRPC. The annotation of the proto makes `config` the body, but no server of 0.3 follows it.
  CreateTaskPushNotificationConfig: (config) => ({
    taskId: config.taskId,
    parent: taskName(config.taskId ?? ""),
    configId: config.id ?? "",
    config: toProtoPushConfig(config),
  }),
  GetTaskPushNotificationConfig: ({ taskId, id }) => ({ taskId, id }),
  ListTaskPushNotificationConfigs: ({ taskId }) => ({ taskId }),
  DeleteTaskPushNotificationConfig: ({ taskId, id }) => ({ taskId, id }),
  GetExtendedAgentCard: () => ({}),
};

const grpcWriters: Values<"request"> = {
  ...restWriters,
  GetTask: ({ id, historyLength }) => ({ name: taskName(id), ...(historyLength !== undefined && { historyLength }) }),
  CancelTask: ({ id }) => ({ name: taskName(id) }),
  SubscribeToTask: ({ id }) => ({ name: taskName(id) }),
  CreateTaskPushNotificationConfig: (config) => ({
    parent: taskName(config.taskId ?? ""),
    configId: config.id ?? "",
    config: toProtoPushConfig(config),
  }),
  GetTaskPushNotificationConfig: ({ taskId, id }) => ({ name: pushNameOf(taskId, id) }),
  ListTaskPushNotificationConfigs: ({ taskId }) => ({ parent: taskName(taskId) }),
  DeleteTaskPushNotificationConfig: ({ taskId, id }) => ({ name: pushNameOf(taskId, id) }),
};

const answers: Values<"response"> = {
  SendMessage: (response) => toProtoEvent(fromEvent(response)),
  SendStreamingMessage: (event) => toProtoEvent(fromEvent(event)),
  GetTask: (task) => toProtoTask(fromTask(task)),
  // An array (0.3 §7.3, `tasks/list`). REST names the next page in a header. The proto has no such method.
  ListTasks: ({ tasks }) => tasks.map((task) => toProtoTask(fromTask(task))),
  CancelTask: (task) => toProtoTask(fromTask(task)),
  SubscribeToTask: (event) => toProtoEvent(fromEvent(event)),
  CreateTaskPushNotificationConfig: toProtoPushConfig,
  GetTaskPushNotificationConfig: toProtoPushConfig,
  ListTaskPushNotificationConfigs: ({ configs = [], ...rest }) => ({
    configs: configs.map(toProtoPushConfig),
    ...rest,
  }),
  DeleteTaskPushNotificationConfig: () => ({}),
  GetExtendedAgentCard: (card) => toProtoCard(encodeCard(card)),
};

const results: Readers<"response"> = {
  SendMessage(value): SendMessageResponse {
    const { task, message } = decodeEvent(value);
    if (task !== undefined) return { task };
    return { message: message ?? answered(protoStreamResponse, {}, "answer") } as SendMessageResponse;
  },
  SendStreamingMessage: decodeEvent,
  GetTask: readTask,
  // The text says an array. Others answer as in 1.0.
  ListTasks(value) {
    const { tasks: given = [], ...rest }: Fields = Array.isArray(value) ? { tasks: value } : fieldsOf(value);
    const tasks = answered(list(protoTask), given, "answer").map(toModelTask);
    const counts = { pageSize: tasks.length, totalSize: tasks.length };
    return { ...answered(listTasksResponseSchema, { ...counts, ...rest, tasks: [] }, "answer"), tasks };
  },
  CancelTask: readTask,
  SubscribeToTask: decodeEvent,
  // Some servers wrap the config, as the request does.
  CreateTaskPushNotificationConfig: (value) => readConfig(fieldsOf(value)["config"] ?? value),
  GetTaskPushNotificationConfig: readConfig,
  // The text says an array. All SDKs send an object with an array.
  ListTaskPushNotificationConfigs: (value) => ({
    configs: (Array.isArray(value) ? value : ((fieldsOf(value)["configs"] ?? []) as unknown[])).map(readConfig),
  }),
  DeleteTaskPushNotificationConfig: (value) => answered(emptySchema, value ?? {}, "answer"),
  GetExtendedAgentCard: decodeCard,
};

function shapesWith(writers: Values<"request">, card: Values<"response">["GetExtendedAgentCard"]): Shapes {
  const values: Values<"response"> = { ...answers, GetExtendedAgentCard: card };
  return {
    decodeRequest: (operation, value) => readers[operation](value ?? {}),
    encodeRequest: (operation, request) => writers[operation](request),
    responseOf: (operation, reply) => values[operation](reply.payload.read()),
    encodeResponse<Name extends OperationName>(operation: Name, reply: Reply<Operations[Name]["response"]>): string {
      return JSON.stringify(values[operation](reply.payload.read()));
    },
    decodeResponse: (operation, value) => results[operation](value),
    eventOf: ({ payload }: StreamItem) => toProtoEvent(fromEvent(payload.read())),
    encodeEvent: ({ payload }: StreamItem) => JSON.stringify(toProtoEvent(fromEvent(payload.read()))),
    decodeEvent,
    endsStream,
  };
}

/** Clients read the card at `/v1/card` in JSON or in ProtoJSON, so it has the members of both. */
export const restShapes: Shapes = /* @__PURE__ */ shapesWith(restWriters, (card) => toRestCard(encodeCard(card)));
export const grpcShapes: Shapes = /* @__PURE__ */ shapesWith(grpcWriters, answers.GetExtendedAgentCard);

/** Whether an event says that it is the last one of its stream. */
function endsStream(value: unknown): boolean {
  const { statusUpdate, status_update: underProtoName } = fieldsOf(value);
  return fieldsOf(statusUpdate ?? underProtoName)["final"] === true;
}

function decodeEvent(value: unknown): StreamResponse {
  return toEvent(ofProtoEvent(answered(protoStreamResponse, value, "event")));
}

function readTask(value: unknown): Operations["GetTask"]["response"] {
  return toTask(ofProtoTask(answered(protoTask, value, "answer")));
}

function toModelTask(task: Parameters<typeof ofProtoTask>[0]): Operations["GetTask"]["response"] {
  return toTask(ofProtoTask(task));
}

function readConfig(value: unknown): TaskPushNotificationConfig {
  const { name = "", pushNotificationConfig } = answered(protoTaskPushConfig, value, "answer");
  const { taskId = "", id } = idsIn(name) ?? {};
  return toPushConfig({
    taskId,
    pushNotificationConfig: { ...(id !== undefined && { id }), ...pushNotificationConfig },
  });
}

function toProtoPushConfig(config: TaskPushNotificationConfig): ProtoTaskPushConfig {
  return toProtoPush(config.taskId ?? "", fromPushConfig(config).pushNotificationConfig);
}

function taskName(id: string): string {
  return `tasks/${id}`;
}

/** The request with the id of its task. It may be in a resource name. */
function withTask(value: unknown): unknown {
  const { name, ...rest } = fieldsOf(value);
  if (rest["id"] !== undefined || name === undefined) return { ...rest };
  return { ...rest, id: idsIn(textOf(name) ?? "")?.taskId ?? wrongName("name") };
}

function configIn(value: unknown, field: "name" | "parent"): { readonly taskId: string; readonly id?: string } {
  const { taskId, id, [field]: name } = fieldsOf(value);
  if (typeof taskId === "string") return { taskId, ...(typeof id === "string" && { id }) };
  return idsIn(textOf(name) ?? "") ?? wrongName(field);
}

function wrongName(field: string): never {
  throw invalidParams([{ field, description: "must be a resource name such as tasks/123" }]);
}

/** 0.3 spells `CANCELLED` with two Ls. */
function withState(value: unknown, from: string, to: string): ListTasksRequest {
  const fields = fieldsOf(value);
  return fields["status"] === from ? { ...fields, status: to as NonNullable<ListTasksRequest["status"]> } : fields;
}

function fieldsOf(value: unknown): Fields {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? (value as Fields) : {};
}

function textOf(value: unknown): string | undefined {
  return typeof value === "string" && value !== "" ? value : undefined;
}
