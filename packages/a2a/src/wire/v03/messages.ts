import {
  A2AError,
  isTerminal,
  sendMessageRequestSchema,
  type Artifact,
  type DataPart,
  type JsonObject,
  type Message,
  type Part,
  type SendMessageRequest,
  type SendMessageResponse,
  type StreamResponse,
  type Task,
  type TaskArtifactUpdateEvent,
  type TaskPushNotificationConfig,
  type TaskState,
  type TaskStatus,
  type TaskStatusUpdateEvent,
} from "../../model/index.ts";
import { isObject, type Field, type Schema } from "../../model/schema.ts";
import * as s from "../../model/schema.ts";
import type { OperationName, Operations, Reply } from "../../protocol/index.ts";
import { answered, checked, type Shapes } from "../codec.ts";

/*
 * Code that JSON-RPC (0.3 §6, §7) and ProtoJSON of 0.3 share. A schema checks the JSON of 0.3, so that errors name the sent fields, and then
 * converts the JSON to the model. A writer does the reverse.
 */

/** JSON of 0.3. */
export type Json = Readonly<Record<string, unknown>>;

/** Checks a value, and converts it. */
export function converted<From, To>(schema: Schema<From>, convert: (value: From) => To): Schema<To> {
  return (value, state) => {
    const checked = schema(value, state);
    return checked === undefined || state.violations.length > 0 ? checked : convert(checked as From);
  };
}

/** Maps one of these names to the model's name. */
export function renamed<T>(names: Readonly<Record<string, T>>): Schema<T> {
  return converted(s.oneName(Object.keys(names)), (name) => names[name] as T);
}

/** Reads the field `alias` as the field `name`. */
export function aliased<T>(schema: Schema<T>, alias: string, name: string): Schema<T> {
  return (value, state) => {
    if (!isObject(value) || !(alias in value) || name in value) return schema(value, state);
    const { [alias]: member, ...rest } = value;
    return schema({ ...rest, [name]: member }, state);
  };
}

/** A file. Older versions and the proto name `bytes` `fileWithBytes`, and `uri` `fileWithUri`. */
export interface File03 {
  readonly bytes?: string;
  readonly uri?: string;
  readonly fileWithBytes?: string;
  readonly fileWithUri?: string;
  readonly name?: string;
  readonly mimeType?: string;
}

export function toFilePart(file: File03, metadata: JsonObject | undefined): Part {
  const { bytes, uri, fileWithBytes, fileWithUri, name, mimeType } = file;
  const raw = bytes ?? fileWithBytes;
  const more = {
    ...(name !== undefined && { filename: name }),
    ...(mimeType !== undefined && { mediaType: mimeType }),
    ...(metadata !== undefined && { metadata }),
  };
  return raw === undefined ? { url: uri ?? fileWithUri ?? "", ...more } : { raw, ...more };
}

/** Metadata key of a data part with `data` wrapped as `{ value }`, because data in 0.3 is an object (§6.5.3). The Python SDK uses the same key. */
const wrappedData = "data_part_compat";

export function toDataPart(data: JsonObject, metadata: JsonObject | undefined): Part {
  const value = data["value"];
  if (metadata?.[wrappedData] !== true || value === undefined) {
    return { data, ...(metadata !== undefined && { metadata }) };
  }
  const { [wrappedData]: _, ...others } = metadata;
  return { data: value, ...(Object.keys(others).length > 0 && { metadata: others }) };
}

/** The data and metadata of a part, in the form of 0.3. */
export function fromDataPart({ data, metadata }: DataPart): { readonly data: object; readonly metadata?: JsonObject } {
  if (isObject(data)) return { data, ...(metadata !== undefined && { metadata }) };
  return { data: { value: data }, metadata: { [wrappedData]: true, ...metadata } };
}

/** The parts of a message or an artifact. */
export function partList(part: Schema<Part>): Field<readonly Part[]> & { readonly required: true } {
  return s.required(s.list(part, "must hold at least one part"), s.none);
}

/** Schemas of a task and of its events. */
export interface TaskSchemas {
  readonly task: Schema<Task>;
  readonly statusUpdate: Schema<TaskStatusUpdateEvent>;
  readonly artifactUpdate: Schema<TaskArtifactUpdateEvent>;
}

export function taskSchemas(part: Schema<Part>, message: Schema<Message>, state: Schema<TaskState>): TaskSchemas {
  const artifact = s.object<Artifact>({
    artifactId: s.required(s.id, s.nothing),
    name: s.optional(s.blank),
    description: s.optional(s.blank),
    parts: partList(part),
    metadata: s.optional(s.struct),
    extensions: s.optional(s.strings),
  });
  // The proto calls the message `update`.
  const status = aliased(
    s.object<TaskStatus>({
      state: s.required(state),
      message: s.optional(message),
      timestamp: s.optional(s.timestamp),
    }),
    "update",
    "message",
  );
  const ids = { taskId: s.required(s.id), contextId: s.required(s.optionalId, s.nothing) };
  return {
    task: s.object<Task>({
      id: s.required(s.id),
      contextId: s.optional(s.optionalId),
      status: s.required(status),
      history: s.optional(s.list(message)),
      artifacts: s.optional(s.list(artifact)),
      metadata: s.optional(s.struct),
    }),
    statusUpdate: converted(
      s.object<TaskStatusUpdateEvent & { readonly final?: boolean }>({
        ...ids,
        status: s.required(status),
        final: s.optional(s.boolean),
        metadata: s.optional(s.struct),
      }),
      ({ final: _, ...update }) => update,
    ),
    artifactUpdate: s.object<TaskArtifactUpdateEvent>({
      ...ids,
      artifact: s.required(artifact),
      append: s.optional(s.boolean),
      lastChunk: s.optional(s.boolean),
      metadata: s.optional(s.struct),
    }),
  };
}

/** The task that a request names. */
export const taskQuery: Schema<{ readonly id: string; readonly historyLength?: number }> = s.object<{
  readonly id: string;
  readonly historyLength?: number;
}>({ id: s.required(s.id), historyLength: s.optional(s.integer(0)) });

interface Push03 {
  readonly id?: string;
  readonly url: string;
  readonly token?: string;
  readonly authentication?: { readonly schemes: readonly string[]; readonly credentials?: string };
}

const authentication = s.object<NonNullable<Push03["authentication"]>>({
  schemes: s.required(s.list(s.filled, "must name at least one scheme"), s.none),
  credentials: s.optional(s.blank),
});

/** An empty object counts as absent, because ProtoJSON omits empty lists. */
const authenticationOrNone: Schema<NonNullable<Push03["authentication"]>> = (value, state) =>
  isObject(value) && Object.keys(value).length === 0 ? undefined : authentication(value, state);

/** A webhook. Keeps only the first scheme of the list, because 1.0 allows one (§4.3.2). */
export const pushConfig: Schema<TaskPushNotificationConfig> = converted(
  s.object<Push03>({
    id: s.optional(s.optionalId),
    url: s.required(s.filled),
    token: s.optional(s.blank),
    authentication: s.optional(authenticationOrNone),
  }),
  ({ authentication: { schemes: [scheme], credentials } = { schemes: [] }, ...rest }) => {
    if (scheme === undefined) return rest;
    return { ...rest, authentication: { scheme, ...(credentials !== undefined && { credentials }) } };
  },
);

export function fromPush({ id: own, url, token, authentication: used }: TaskPushNotificationConfig): Json {
  return {
    ...(own !== undefined && { id: own }),
    url,
    ...(token !== undefined && { token }),
    ...(used !== undefined && {
      authentication: {
        schemes: [used.scheme],
        ...(used.credentials !== undefined && { credentials: used.credentials }),
      },
    }),
  };
}

/** The parameters of a send. */
export interface Send03 {
  readonly message: Message;
  readonly configuration?: {
    readonly acceptedOutputModes?: readonly string[];
    readonly historyLength?: number;
    readonly pushNotificationConfig?: TaskPushNotificationConfig;
    readonly blocking?: boolean;
  };
  readonly metadata?: JsonObject;
}

/** If `blocking` is absent, the call waits, as in other implementations over JSON-RPC. In ProtoJSON, an absent `blocking` means `false`. */
export function toSendRequest({ message, configuration, metadata }: Send03): SendMessageRequest {
  const { blocking, pushNotificationConfig, ...rest } = configuration ?? {};
  return {
    message,
    ...(configuration !== undefined && {
      configuration: {
        ...rest,
        ...(pushNotificationConfig !== undefined && { taskPushNotificationConfig: pushNotificationConfig }),
        ...(blocking === false && { returnImmediately: true }),
      },
    }),
    ...(metadata !== undefined && { metadata }),
  };
}

/** A copy of the request without members that 1.0 does not define. Throws `InvalidParams` for an invalid request. */
export function copyOf<T>(schema: Schema<T>, request: T): T {
  return checked(schema, request, "copy");
}

/** Writes the parts that differ between JSON-RPC and ProtoJSON. */
export interface Writer {
  /** The name of the webhook in a send's configuration. */
  readonly push: "pushNotificationConfig" | "pushNotification";
  part(part: Part): Json;
  message(message: Message): Json;
  state(state: TaskState): string;
}

export function fromArtifact(writer: Writer, { parts: own, ...rest }: Artifact): Json {
  return { parts: own.map((part) => writer.part(part)), ...rest };
}

export function fromStatus(writer: Writer, { state, message, ...rest }: TaskStatus): Json {
  return {
    state: writer.state(state),
    ...(message !== undefined && { message: writer.message(message) }),
    ...rest,
  };
}

export function fromTask(
  writer: Writer,
  { id: taskId, contextId = "", status, artifacts, history, ...rest }: Task,
): Json {
  return {
    id: taskId,
    // `contextId` is required (§6.1).
    contextId,
    status: fromStatus(writer, status),
    ...(history !== undefined && { history: history.map((each) => writer.message(each)) }),
    ...(artifacts !== undefined && { artifacts: artifacts.map((each) => fromArtifact(writer, each)) }),
    ...rest,
  };
}

export function fromStatusUpdate(writer: Writer, { taskId, contextId, status, ...rest }: TaskStatusUpdateEvent): Json {
  return { taskId, contextId, status: fromStatus(writer, status), final: isFinal(status.state), ...rest };
}

export function fromArtifactUpdate(
  writer: Writer,
  { taskId, contextId, artifact, ...rest }: TaskArtifactUpdateEvent,
): Json {
  return { taskId, contextId, artifact: fromArtifact(writer, artifact), ...rest };
}

/**
 * Always has `blocking`, because servers disagree on its default, and `acceptedOutputModes`, because 0.2.5 requires it. An empty list accepts
 * everything.
 */
export function fromSend(writer: Writer, request: SendMessageRequest): Json {
  const { message, configuration, metadata } = copyOf(sendMessageRequestSchema, request);
  const {
    acceptedOutputModes = [],
    historyLength,
    taskPushNotificationConfig: push,
    returnImmediately,
  } = configuration ?? {};
  return {
    message: writer.message(message),
    ...(configuration !== undefined && {
      configuration: {
        acceptedOutputModes,
        ...(historyLength !== undefined && { historyLength }),
        ...(push !== undefined && { [writer.push]: fromPush(push) }),
        blocking: returnImmediately !== true,
      },
    }),
    ...(metadata !== undefined && { metadata }),
  };
}

/** The answer of a send: an event that is a task or a message. */
export function sendResultOf({ task, message }: StreamResponse): SendMessageResponse {
  if (task !== undefined) return { task };
  if (message !== undefined) return { message };
  throw new A2AError("InvalidResponse", "The peer's answer is neither a task nor a message");
}

/**
 * Whether an update to this state is `final`, so that no events follow until the caller sends another message (0.3 §7.2.2). Auth-required is not
 * final, because the credential may arrive in another way.
 */
export function isFinal(state: TaskState | undefined): boolean {
  return state !== undefined && (isTerminal(state) || state === "TASK_STATE_INPUT_REQUIRED");
}

/** Reads and writes each operation, in JSON-RPC or ProtoJSON. */
export interface Form {
  readonly readRequest: { readonly [Name in OperationName]: (value: unknown) => Operations[Name]["request"] };
  readonly writeRequest: { readonly [Name in OperationName]: (request: Operations[Name]["request"]) => unknown };
  readonly readResponse: { readonly [Name in OperationName]: (value: unknown) => Operations[Name]["response"] };
  readonly writeResponse: { readonly [Name in OperationName]: (response: Operations[Name]["response"]) => unknown };
  readonly readEvent: (value: unknown) => StreamResponse;
  readonly writeEvent: (event: StreamResponse) => unknown;
  /** Whether an event is marked as the last of its stream. */
  readonly endsStream: (event: unknown) => boolean;
}

/** The shapes of a form. A request without parameters counts as an empty request. */
export function shapesOf(form: Form): Shapes {
  const responseOf = <Name extends OperationName>(
    operation: Name,
    reply: Reply<Operations[Name]["response"]>,
  ): unknown => form.writeResponse[operation](reply.payload.read());
  return {
    decodeRequest: (operation, value) => form.readRequest[operation](value ?? {}),
    encodeRequest: (operation, request) => form.writeRequest[operation](request),
    responseOf,
    encodeResponse: (operation, reply) => JSON.stringify(responseOf(operation, reply)),
    decodeResponse: (operation, value) => form.readResponse[operation](value),
    eventOf: ({ payload }) => form.writeEvent(payload.read()),
    encodeEvent: ({ payload }) => JSON.stringify(form.writeEvent(payload.read())),
    decodeEvent: form.readEvent,
    endsStream: form.endsStream,
  };
}

/** Reads a caller's value without changing it, because other code may also read the value. */
export function asked<T>(schema: Schema<T>): (value: unknown) => T {
  return (value) => checked(schema, value, "request", true);
}

/** Reads a server's answer without changing it. */
export function told<T>(schema: Schema<T>, what = "answer"): (value: unknown) => T {
  return (value) => answered(schema, value, what, true);
}
