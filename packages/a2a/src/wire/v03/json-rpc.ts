import {
  A2AError,
  emptySchema,
  getExtendedAgentCardRequestSchema,
  taskPushNotificationConfigSchema,
  taskStates,
  type CancelTaskRequest,
  type CheckMode,
  type JsonObject,
  type Message,
  type Part,
  type SendMessageRequest,
  type StreamResponse,
  type Task,
  type TaskPushNotificationConfig,
  type TaskState,
} from "../../model/index.ts";
import { isObject, type Schema } from "../../model/schema.ts";
import * as s from "../../model/schema.ts";
import type { Shapes } from "../codec.ts";
import { decodeCard, encodeCard } from "./cards.ts";
import {
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
  type Json,
  type Send03,
  type Writer,
} from "./messages.ts";

/* Requests, responses and events of 0.3 over JSON-RPC (0.3 §6, §7). */

/** A union whose members differ in `kind`, which the model does not have. `kindOf` finds the kind of a value without `kind`. */
function byKind<T>(
  schemas: Readonly<Record<string, Schema<T>>>,
  kindOf: (value: Json, mode: CheckMode) => string | undefined,
): Schema<T> {
  const known = new Map<unknown, Schema<T>>(Object.entries(schemas));
  const wrong = s.object<{ readonly kind: string }>({ kind: s.required(s.oneName(Object.keys(schemas))) });
  return (value, state) => {
    if (!isObject(value)) return wrong(value, state);
    const { kind, ...rest } = value;
    const schema = known.get(kind ?? kindOf(rest, state.mode));
    return schema === undefined ? wrong(value, state) : schema(rest, state);
  };
}

/** Finds the kind of an answer whose `kind` the server omitted, by the members that reveal it. The first member that is present decides. */
function toldBy(kinds: Readonly<Record<string, string>>): (value: Json, mode: CheckMode) => string | undefined {
  return (value, mode) =>
    mode === "answer" ? Object.entries(kinds).find(([member]) => value[member] !== undefined)?.[1] : undefined;
}

function ofKind<T>(kind: string, schema: Schema<T>): Schema<T> {
  return byKind({ [kind]: schema }, () => kind);
}

const file: Schema<File03> = s.object<File03>(
  {
    bytes: s.optional(s.base64),
    uri: s.optional(s.filled),
    fileWithBytes: s.optional(s.base64),
    fileWithUri: s.optional(s.filled),
    name: s.optional(s.blank),
    mimeType: s.optional(s.blank),
  },
  { members: ["bytes", "uri", "fileWithBytes", "fileWithUri"] },
);

const metadata = s.optional(s.struct);

const part = byKind<Part>(
  {
    text: s.object<{ readonly text: string; readonly metadata?: JsonObject }>({
      text: s.required(s.string, s.nothing),
      metadata,
    }),
    file: converted(
      s.object<{ readonly file: File03; readonly metadata?: JsonObject }>({ file: s.required(file), metadata }),
      (given) => toFilePart(given.file, given.metadata),
    ),
    data: converted(
      s.object<{ readonly data: JsonObject; readonly metadata?: JsonObject }>({ data: s.required(s.struct), metadata }),
      (given) => toDataPart(given.data, given.metadata),
    ),
  },
  toldBy({ text: "text", file: "file", data: "data" }),
);

const messageSchema = converted(
  ofKind(
    "message",
    s.object<Message>({
      messageId: s.required(s.id, s.nothing),
      contextId: s.optional(s.optionalId),
      taskId: s.optional(s.optionalId),
      role: s.required(renamed<Message["role"]>({ user: "ROLE_USER", agent: "ROLE_AGENT" })),
      parts: partList(part),
      metadata,
      extensions: s.optional(s.strings),
      referenceTaskIds: s.optional(s.list(s.id)),
    }),
  ),
  ({ role, parts, ...rest }): Message => ({ role, parts, ...rest }),
);

/** The name of a state in 0.3, such as `input-required` for `TASK_STATE_INPUT_REQUIRED`. */
function stateName(state: TaskState): string {
  return state.slice("TASK_STATE_".length).toLowerCase().replace("_", "-");
}

const states: Readonly<Record<string, TaskState>> = {
  ...Object.fromEntries(taskStates.map((state) => [stateName(state), state])),
  // 1.0 has no such state. The task may continue, so it must not look finished.
  unknown: "TASK_STATE_WORKING",
  // This is the spelling of the proto, which some implementations use in JSON too.
  cancelled: "TASK_STATE_CANCELED",
};

const { task, statusUpdate, artifactUpdate } = taskSchemas(part, messageSchema, renamed(states));
const taskSchema = ofKind("task", task);

const event = byKind<StreamResponse>(
  {
    task: converted(task, (value) => ({ task: value })),
    message: converted(messageSchema, (value) => ({ message: value })),
    "status-update": converted(statusUpdate, (value) => ({ statusUpdate: value })),
    "artifact-update": converted(artifactUpdate, (value) => ({ artifactUpdate: value })),
  },
  toldBy({ artifact: "artifact-update", parts: "message", taskId: "status-update", status: "task" }),
);

const sendParams: Schema<SendMessageRequest> = converted(
  s.object<Send03>({
    message: s.required(messageSchema),
    configuration: s.optional(
      s.object<NonNullable<Send03["configuration"]>>({
        acceptedOutputModes: s.optional(s.strings),
        historyLength: s.optional(s.integer(0)),
        pushNotificationConfig: s.optional(pushConfig),
        blocking: s.optional(s.boolean),
      }),
    ),
    metadata,
  }),
  toSendRequest,
);

const taskParams: Schema<CancelTaskRequest> = s.object<Omit<CancelTaskRequest, "tenant">>({
  id: s.required(s.id),
  metadata,
});

interface PushParams {
  readonly id: string;
  readonly pushNotificationConfigId?: string;
}

const pushGetParams = s.object<PushParams>({
  id: s.required(s.id),
  pushNotificationConfigId: s.optional(s.optionalId),
});
const pushDeleteParams = s.object<Required<PushParams>>({
  id: s.required(s.id),
  pushNotificationConfigId: s.required(s.id),
});

const taskPushConfig: Schema<TaskPushNotificationConfig> = converted(
  s.object<{ readonly taskId: string; readonly pushNotificationConfig: TaskPushNotificationConfig }>({
    taskId: s.required(s.id),
    pushNotificationConfig: s.required(pushConfig),
  }),
  ({ taskId, pushNotificationConfig }) => ({ taskId, ...pushNotificationConfig }),
);

const ownTask = s.object<{ readonly taskId: string }>({ taskId: s.required(s.id) });

function fromPart(given: Part): Json {
  const { text, raw, url, data, filename, mediaType, metadata: more } = given;
  const meta = more !== undefined && { metadata: more };
  if (text !== undefined) return { kind: "text", text, ...meta };
  if (data !== undefined) return { kind: "data", ...fromDataPart(given) };
  return {
    kind: "file",
    file: {
      ...(raw !== undefined ? { bytes: raw } : { uri: url ?? "" }),
      ...(filename !== undefined && { name: filename }),
      ...(mediaType !== undefined && { mimeType: mediaType }),
    },
    ...meta,
  };
}

/** In 0.3, text and data have no file name and no media type (§6.5). */
const writer: Writer = {
  push: "pushNotificationConfig",
  part: fromPart,
  message: ({ role, parts, ...rest }) => ({
    kind: "message",
    role: role === "ROLE_USER" ? "user" : "agent",
    parts: parts.map(fromPart),
    ...rest,
  }),
  state: stateName,
};

function fromTask(task: Task): Json {
  return { kind: "task", ...taskOf(writer, task) };
}

export function fromEvent(given: StreamResponse): Json {
  if (given.task !== undefined) return fromTask(given.task);
  if (given.message !== undefined) return writer.message(given.message);
  if (given.statusUpdate !== undefined)
    return { kind: "status-update", ...fromStatusUpdate(writer, given.statusUpdate) };
  return { kind: "artifact-update", ...fromArtifactUpdate(writer, given.artifactUpdate) };
}

function fromTaskPush(config: TaskPushNotificationConfig): Json {
  return { taskId: config.taskId ?? "", pushNotificationConfig: fromPush(config) };
}

const fromSend = (request: SendMessageRequest): Json => sendOf(writer, request);

/** Throws, because in 0.3 only the other bindings can list tasks (§3.5.6). */
function noList(): never {
  throw new A2AError("UnsupportedOperation", "A2A 0.3 has no list of tasks over JSON-RPC");
}

const readEvent = told(event, "event");
const readConfigs = told(s.list(taskPushConfig));

export const jsonRpcShapes: Shapes = shapesOf({
  readRequest: {
    SendMessage: asked(sendParams),
    SendStreamingMessage: asked(sendParams),
    GetTask: asked(taskQuery),
    ListTasks: noList,
    CancelTask: asked(taskParams),
    SubscribeToTask: (value) => ({ id: asked(taskParams)(value).id }),
    CreateTaskPushNotificationConfig: asked(taskPushConfig),
    GetTaskPushNotificationConfig(value) {
      const params = asked(pushGetParams)(value);
      // If the request names no config, `adapt` finds one.
      return { taskId: params.id, id: params.pushNotificationConfigId ?? "" };
    },
    ListTaskPushNotificationConfigs: (value) => ({ taskId: asked(taskParams)(value).id }),
    DeleteTaskPushNotificationConfig(value) {
      const params = asked(pushDeleteParams)(value);
      return { taskId: params.id, id: params.pushNotificationConfigId };
    },
    GetExtendedAgentCard: asked(getExtendedAgentCardRequestSchema),
  },
  writeRequest: {
    SendMessage: fromSend,
    SendStreamingMessage: fromSend,
    GetTask: (request) => copyOf(taskQuery, request),
    ListTasks: noList,
    CancelTask: (request) => copyOf(taskParams, request),
    SubscribeToTask: (request) => copyOf(taskParams, request),
    CreateTaskPushNotificationConfig(config) {
      copyOf<object>(ownTask, config);
      return fromTaskPush(copyOf(taskPushNotificationConfigSchema, config));
    },
    GetTaskPushNotificationConfig: (key) => copyOf(pushGetParams, { id: key.taskId, pushNotificationConfigId: key.id }),
    ListTaskPushNotificationConfigs: ({ taskId }) => copyOf(taskParams, { id: taskId }),
    DeleteTaskPushNotificationConfig: (key) =>
      copyOf(pushDeleteParams, { id: key.taskId, pushNotificationConfigId: key.id }),
    // The method has no parameters (0.3 §7.10).
    GetExtendedAgentCard: () => undefined,
  },
  readResponse: {
    SendMessage: (value) => sendResultOf(readEvent(value)),
    SendStreamingMessage: readEvent,
    GetTask: told(taskSchema),
    ListTasks: noList,
    CancelTask: told(taskSchema),
    SubscribeToTask: readEvent,
    CreateTaskPushNotificationConfig: told(taskPushConfig),
    GetTaskPushNotificationConfig: told(taskPushConfig),
    // Some servers return an empty answer if there is no config.
    ListTaskPushNotificationConfigs: (value) => ({ configs: readConfigs(value ?? []) }),
    DeleteTaskPushNotificationConfig: (value) => told(emptySchema)(value ?? {}),
    GetExtendedAgentCard: decodeCard,
  },
  writeResponse: {
    SendMessage: fromEvent,
    SendStreamingMessage: fromEvent,
    GetTask: fromTask,
    ListTasks: noList,
    CancelTask: fromTask,
    SubscribeToTask: fromEvent,
    CreateTaskPushNotificationConfig: fromTaskPush,
    GetTaskPushNotificationConfig: fromTaskPush,
    ListTaskPushNotificationConfigs: ({ configs = [] }) => configs.map(fromTaskPush),
    DeleteTaskPushNotificationConfig: () => null,
    GetExtendedAgentCard: encodeCard,
  },
  readEvent,
  writeEvent: fromEvent,
  endsStream: (value) => isObject(value) && value["final"] === true,
});
