import {
  emptySchema,
  getExtendedAgentCardRequestSchema,
  invalidParams,
  listTasksRequestSchema,
  listTasksResponseSchema,
  taskStates,
  type JsonObject,
  type ListTasksRequest,
  type Message,
  type Part,
  type SendMessageRequest,
  type StreamResponse,
  type Task,
  type TaskPushNotificationConfig,
  type TaskState,
} from "../../model/index.ts";
import { isObject, itemsOf, type Schema } from "../../model/schema.ts";
import * as s from "../../model/schema.ts";
import type { Shapes } from "../codec.ts";
import { decodeCard, protoCard, restCard } from "./cards.ts";
import {
  aliased,
  asked,
  converted,
  copyOf,
  fromArtifactUpdate,
  fromDataPart,
  fromPush,
  fromSend as sendOf,
  fromStatusUpdate,
  fromTask as taskOf,
  partList,
  pushConfig,
  renamed,
  sendResultOf,
  shapesOf,
  taskQuery,
  taskSchemas,
  toDataPart,
  toFilePart,
  told,
  toSendRequest,
  type File03,
  type Form,
  type Json,
  type Send03,
  type Writer,
} from "./messages.ts";

/*
 * ProtoJSON of 0.3, for REST and gRPC (0.3 §3.2.2, §3.2.3). Requests name their task in the path or by a resource name; a server reads
 * both. A server also reads names of files and metadata of parts, which SDKs have added.
 */

interface ProtoPart {
  readonly text?: string;
  readonly file?: File03;
  readonly data?: { readonly data: JsonObject };
  readonly metadata?: JsonObject;
}

const part: Schema<Part> = converted(
  s.object<ProtoPart>(
    {
      text: s.optional(s.string),
      file: s.optional(
        s.object<Omit<File03, "bytes" | "uri">>(
          {
            fileWithUri: s.optional(s.filled),
            fileWithBytes: s.optional(s.base64),
            mimeType: s.optional(s.blank),
            name: s.optional(s.blank),
          },
          { members: ["fileWithUri", "fileWithBytes"] },
        ),
      ),
      data: s.optional(s.object<{ readonly data: JsonObject }>({ data: s.required(s.struct) })),
      metadata: s.optional(s.struct),
    },
    { members: ["text", "file", "data"] },
  ),
  ({ text = "", file, data, metadata }) => {
    if (file !== undefined) return toFilePart(file, metadata);
    if (data !== undefined) return toDataPart(data.data, metadata);
    return { text, ...(metadata !== undefined && { metadata }) };
  },
);

const messageSchema: Schema<Message> = converted(
  s.object<Omit<Message, "parts" | "referenceTaskIds"> & { readonly content: Message["parts"] }>({
    messageId: s.required(s.id, s.nothing),
    contextId: s.optional(s.optionalId),
    taskId: s.optional(s.optionalId),
    role: s.required(s.oneName<Message["role"]>(["ROLE_USER", "ROLE_AGENT"])),
    content: partList(part),
    metadata: s.optional(s.struct),
    extensions: s.optional(s.strings),
  }),
  ({ role, content, ...rest }) => ({ role, parts: content, ...rest }),
);

const states: Readonly<Record<string, TaskState>> = {
  ...Object.fromEntries(taskStates.map((state) => [state, state])),
  TASK_STATE_CANCELLED: "TASK_STATE_CANCELED",
  TASK_STATE_UNSPECIFIED: "TASK_STATE_WORKING",
};

const { task, statusUpdate, artifactUpdate } = taskSchemas(part, messageSchema, renamed(states));

const event: Schema<StreamResponse> = aliased(
  s.union<StreamResponse>(
    {
      task: s.optional(task),
      message: s.optional(messageSchema),
      statusUpdate: s.optional(statusUpdate),
      artifactUpdate: s.optional(artifactUpdate),
    },
    s.exactlyOne,
  ),
  "msg",
  "message",
);

interface ProtoSend extends Omit<Send03, "configuration"> {
  readonly configuration?: Omit<NonNullable<Send03["configuration"]>, "pushNotificationConfig"> & {
    readonly pushNotification?: TaskPushNotificationConfig;
  };
}

/** In proto3 an absent field is `false` or `0`, so by default the call does not wait, and the whole history is sent (0.3 §7.1). */
const sendSchema: Schema<SendMessageRequest> = converted(
  aliased(
    s.object<ProtoSend>({
      message: s.required(messageSchema),
      configuration: s.optional(
        s.object<NonNullable<ProtoSend["configuration"]>>({
          acceptedOutputModes: s.optional(s.strings),
          pushNotification: s.optional(pushConfig),
          historyLength: s.optional(s.integer(0)),
          blocking: s.optional(s.boolean),
        }),
      ),
      metadata: s.optional(s.struct),
    }),
    "request",
    "message",
  ),
  ({ configuration: { pushNotification, historyLength, blocking, ...rest } = {}, ...send }) =>
    toSendRequest({
      ...send,
      configuration: {
        blocking: blocking === true,
        ...(historyLength !== undefined && historyLength !== 0 && { historyLength }),
        ...(pushNotification !== undefined && { pushNotificationConfig: pushNotification }),
        ...rest,
      },
    }),
);

const writer: Writer = {
  push: "pushNotification",
  part(given) {
    const { text, raw, url, data, filename, mediaType, metadata } = given;
    const more = metadata !== undefined && { metadata };
    if (text !== undefined) return { text, ...more };
    if (data !== undefined) {
      const { data: written, ...rest } = fromDataPart(given);
      return { data: { data: written }, ...rest };
    }
    const file = {
      ...(raw === undefined ? { fileWithUri: url ?? "" } : { fileWithBytes: raw }),
      ...(mediaType !== undefined && { mimeType: mediaType }),
      ...(filename !== undefined && { name: filename }),
    };
    return { file, ...more };
  },
  /** The proto of 0.3 has no `referenceTaskIds`. */
  message: ({ referenceTaskIds: _, role, parts, ...rest }) => ({ role, content: parts.map(writer.part), ...rest }),
  state: (state) => (state === "TASK_STATE_CANCELED" ? "TASK_STATE_CANCELLED" : state),
};

const fromTask = (given: Task): Json => taskOf(writer, given);
const fromSend = (request: SendMessageRequest): Json => sendOf(writer, request);

function fromEvent(given: StreamResponse): Json {
  if (given.task !== undefined) return { task: fromTask(given.task) };
  if (given.message !== undefined) return { message: writer.message(given.message) };
  if (given.statusUpdate !== undefined) return { statusUpdate: fromStatusUpdate(writer, given.statusUpdate) };
  return { artifactUpdate: fromArtifactUpdate(writer, given.artifactUpdate) };
}

function taskName(taskId: string): string {
  return `tasks/${taskId}`;
}

function pushName(taskId: string, config: string): string {
  return `tasks/${taskId}/pushNotificationConfigs/${config}`;
}

/** The ids in the resource name of a task or of a config. */
function idsIn(name: unknown): { readonly taskId: string; readonly id?: string } | undefined {
  const pattern = /^tasks\/([^/]+)(?:\/pushNotificationConfigs(?:\/([^/]*))?)?$/;
  const [, taskId, config] = pattern.exec(textOf(name) ?? "") ?? [];
  if (taskId === undefined) return undefined;
  return { taskId, ...(config !== undefined && config !== "" && { id: config }) };
}

/** A config with its resource name. */
function fromPushConfig(config: TaskPushNotificationConfig): Json {
  return { name: pushName(config.taskId ?? "", config.id ?? ""), pushNotificationConfig: fromPush(config) };
}

interface NamedPush {
  readonly name?: string;
  readonly pushNotificationConfig: TaskPushNotificationConfig;
}

const namedPush = s.object<NamedPush>({ name: s.optional(s.blank), pushNotificationConfig: s.required(pushConfig) });

function readConfig(value: unknown): TaskPushNotificationConfig {
  const { name, pushNotificationConfig } = told(namedPush)(value);
  const { taskId = "", id: own } = idsIn(name) ?? {};
  return { taskId, ...(own !== undefined && { id: own }), ...pushNotificationConfig };
}

/** The task of a request, whose id may be in a resource name. */
function readQuery(value: unknown): { readonly id: string; readonly historyLength?: number } {
  const { name, ...rest } = fieldsOf(value);
  const isNamed = rest["id"] === undefined && name !== undefined;
  return asked(taskQuery)(isNamed ? { ...rest, id: idsIn(name)?.taskId ?? wrongName("name") } : rest);
}

function configIn(value: unknown, field: "name" | "parent"): { readonly taskId: string; readonly id?: string } {
  const { taskId, id: own, [field]: name } = fieldsOf(value);
  if (typeof taskId === "string") return { taskId, ...(typeof own === "string" && { id: own }) };
  return idsIn(name) ?? wrongName(field);
}

function wrongName(field: string): never {
  throw invalidParams([{ field, description: "must be a resource name such as tasks/123" }]);
}

/** 0.3 spells `CANCELLED` with two Ls. */
function withState(value: unknown, from: string, to: string): ListTasksRequest {
  const fields = fieldsOf(value);
  return fields["status"] === from ? { ...fields, status: to as TaskState } : fields;
}

function fieldsOf(value: unknown): Json {
  return isObject(value) ? value : {};
}

function textOf(value: unknown): string | undefined {
  return typeof value === "string" && value !== "" ? value : undefined;
}

const readEvent = told(event, "event");
const readTask = told(task);
const readTasks = told(s.list(task));

const readRequest: Form["readRequest"] = {
  SendMessage: asked(sendSchema),
  SendStreamingMessage: asked(sendSchema),
  GetTask(value) {
    const { id: taskId, historyLength } = readQuery(value);
    return { id: taskId, ...(historyLength !== undefined && historyLength !== 0 && { historyLength }) };
  },
  // 0.3 lists whole tasks. In 1.0, artifacts must be requested.
  ListTasks: (value) =>
    asked(listTasksRequestSchema)({
      includeArtifacts: true,
      ...withState(value, "TASK_STATE_CANCELLED", "TASK_STATE_CANCELED"),
    }),
  CancelTask: (value) => ({ id: readQuery(value).id }),
  SubscribeToTask: (value) => ({ id: readQuery(value).id }),
  CreateTaskPushNotificationConfig(value) {
    const { taskId } = configIn(value, "parent");
    const { configId, config_id: protoId, config } = fieldsOf(value);
    const given = asked(namedPush)(config ?? value).pushNotificationConfig;
    const own = given.id ?? textOf(configId) ?? textOf(protoId);
    return { taskId, ...(own !== undefined && { id: own }), ...given };
  },
  GetTaskPushNotificationConfig(value) {
    // If the request names no config, `adapt` finds one.
    const { taskId, id: own = "" } = configIn(value, "name");
    return { taskId, id: own };
  },
  ListTaskPushNotificationConfigs: (value) => ({ taskId: configIn(value, "parent").taskId }),
  DeleteTaskPushNotificationConfig(value) {
    const { taskId, id: own } = configIn(value, "name");
    if (own === undefined) throw invalidParams([{ field: "name", description: "must name a config" }]);
    return { taskId, id: own };
  },
  GetExtendedAgentCard: asked(getExtendedAgentCardRequestSchema),
};

/** Requests over REST, including the fields of the path, which the transport removes. */
const writeRest: Form["writeRequest"] = {
  // Without a configuration the call does not wait, unlike in 1.0.
  SendMessage: (request) => fromSend({ configuration: {}, ...request }),
  SendStreamingMessage: fromSend,
  GetTask: (request) => copyOf(taskQuery, request),
  ListTasks: (request) =>
    withState(copyOf(listTasksRequestSchema, request), "TASK_STATE_CANCELED", "TASK_STATE_CANCELLED"),
  CancelTask: ({ id: taskId }) => copyOf(taskQuery, { id: taskId }),
  SubscribeToTask: ({ id: taskId }) => copyOf(taskQuery, { id: taskId }),
  // Sends the whole request, as in gRPC. The annotation of the proto makes `config` the body, but no server of 0.3 follows the annotation.
  CreateTaskPushNotificationConfig: (config) => ({ taskId: config.taskId, ...createPush(config) }),
  GetTaskPushNotificationConfig: ({ taskId, id: own }) => ({ taskId, id: own }),
  ListTaskPushNotificationConfigs: ({ taskId }) => ({ taskId }),
  DeleteTaskPushNotificationConfig: ({ taskId, id: own }) => ({ taskId, id: own }),
  GetExtendedAgentCard: () => ({}),
};

function createPush(config: TaskPushNotificationConfig): Json {
  return { parent: taskName(config.taskId ?? ""), configId: config.id ?? "", config: fromPushConfig(config) };
}

const writeGrpc: Form["writeRequest"] = {
  ...writeRest,
  GetTask: ({ id: taskId, historyLength }) => ({
    name: taskName(taskId),
    ...(historyLength !== undefined && { historyLength }),
  }),
  CancelTask: ({ id: taskId }) => ({ name: taskName(taskId) }),
  SubscribeToTask: ({ id: taskId }) => ({ name: taskName(taskId) }),
  CreateTaskPushNotificationConfig: createPush,
  GetTaskPushNotificationConfig: ({ taskId, id: own }) => ({ name: pushName(taskId, own) }),
  ListTaskPushNotificationConfigs: ({ taskId }) => ({ parent: taskName(taskId) }),
  DeleteTaskPushNotificationConfig: ({ taskId, id: own }) => ({ name: pushName(taskId, own) }),
};

const writeResponse: Form["writeResponse"] = {
  SendMessage: fromEvent,
  SendStreamingMessage: fromEvent,
  GetTask: fromTask,
  // The list is an array (0.3 §7.3, `tasks/list`). REST names the next page in a header. The proto has no such method.
  ListTasks: ({ tasks }) => tasks.map(fromTask),
  CancelTask: fromTask,
  SubscribeToTask: fromEvent,
  CreateTaskPushNotificationConfig: fromPushConfig,
  GetTaskPushNotificationConfig: fromPushConfig,
  ListTaskPushNotificationConfigs: ({ configs = [], ...rest }) => ({ configs: configs.map(fromPushConfig), ...rest }),
  DeleteTaskPushNotificationConfig: () => ({}),
  GetExtendedAgentCard: protoCard,
};

const readResponse: Form["readResponse"] = {
  SendMessage: (value) => sendResultOf(readEvent(value)),
  SendStreamingMessage: readEvent,
  GetTask: readTask,
  // The specification defines an array. Other implementations answer as in 1.0.
  ListTasks(value) {
    const { tasks: given = [], ...rest }: Json = Array.isArray(value) ? { tasks: value } : fieldsOf(value);
    const tasks = readTasks(given);
    const counts = { pageSize: tasks.length, totalSize: tasks.length };
    return { ...told(listTasksResponseSchema)({ ...counts, ...rest, tasks: [] }), tasks };
  },
  CancelTask: readTask,
  SubscribeToTask: readEvent,
  // Some servers wrap the config, as the request does.
  CreateTaskPushNotificationConfig: (value) => readConfig(fieldsOf(value)["config"] ?? value),
  GetTaskPushNotificationConfig: readConfig,
  // The specification defines an array, but all SDKs send an object with an array.
  ListTaskPushNotificationConfigs: (value) => ({
    configs: (Array.isArray(value) ? value : itemsOf(fieldsOf(value)["configs"])).map(readConfig),
  }),
  DeleteTaskPushNotificationConfig: (value) => told(emptySchema)(value ?? {}),
  GetExtendedAgentCard: decodeCard,
};

const form: Form = {
  readRequest,
  writeRequest: writeGrpc,
  readResponse,
  writeResponse,
  readEvent,
  writeEvent: fromEvent,
  endsStream(value) {
    const { statusUpdate: update, status_update: underProtoName } = fieldsOf(value);
    return fieldsOf(update ?? underProtoName)["final"] === true;
  },
};

export const grpcShapes: Shapes = shapesOf(form);

/** The shapes of REST. Clients read the card at `/v1/card` as JSON or as ProtoJSON, so the card has the members of both. */
export const restShapes: Shapes = shapesOf({
  ...form,
  writeRequest: writeRest,
  writeResponse: { ...writeResponse, GetExtendedAgentCard: restCard },
});
