import {
  A2AError,
  check,
  invalidParams,
  withFields,
  type AgentCard,
  type CheckMode,
  type Schema,
  type StreamResponse,
  type WireErrorCode,
} from "../model/index.ts";
import { isObject } from "../model/schema.ts";
import type {
  CoreName,
  AgentService,
  OperationName,
  Operations,
  Reply,
  StreamItem,
  MethodRoute,
} from "../protocol/index.ts";

/** The interface of a protocol version, for bindings. */
export interface Codec {
  /** `Major.Minor`. */
  readonly version: string;
  /** Further versions that the codec reads. */
  readonly aliases?: readonly string[];
  /** Requests, responses, events and errors, for every binding that is not in `bindings`. */
  readonly shapes: OwnShapes;
  /** Binding-specific parts of the version, by the binding's name on a card. Each binding defines the type of its member. */
  readonly bindings: Readonly<Record<string, unknown>>;
  /** Whether the tenant is part of the URL, because requests have no tenant field. */
  readonly tenantInPath?: boolean;
  /** Further paths of the card, below a base, that clients of this version try. */
  readonly cardPaths?: readonly string[];
  /** Path for a GET of the extended card (§3.1.11), if servers of this version have no method to read it. */
  readonly extendedCardPath?: string;
  /** The format of webhooks in this version. */
  readonly webhook: WebhookWire;
  /** Header with the URIs of extensions, in lower case. Default: `a2a-extensions`. */
  readonly extensionsHeader?: string;
  /** Writes a card. */
  encodeCard(card: AgentCard): object;
  /** Reads a card of this version. Throws `InvalidResponse`. */
  decodeCard(value: unknown): AgentCard;
  /** Wraps the service of a server, if callers of this version expect different behavior. */
  adapt?(service: AgentService): AgentService;
  /** Wraps the service of a client, if servers of this version behave differently. */
  adaptClient?(service: AgentService): AgentService;
}

/** The body of a webhook, which `Codec.shapes` writes. */
export interface WebhookWire {
  /** Media type of the body. */
  readonly mediaType: string;
  /** The content: each event (A2A 1.0 §4.3.3), or the current task (0.3 §9.5). */
  readonly sends: "event" | "task";
  /** The header with the URIs of the active extensions (A2A 1.0 §3.2.6), in lower case. */
  readonly extensions: string;
}

/** The version of a request without a version (A2A 1.0 §3.6.2). */
export const versionOfSilence = "0.3";

/** The JSON of requests, responses and events. Values are results of `JSON.parse`. */
export interface Shapes {
  /** Reads a request. Throws `InvalidParams`, which names every wrong field. May change the value in place. */
  decodeRequest<Name extends OperationName>(operation: Name, value: unknown): Operations[Name]["request"];
  /** Writes a request. Throws `InvalidParams` for an invalid request. */
  encodeRequest<Name extends OperationName>(operation: Name, request: Operations[Name]["request"]): unknown;
  /** A response as a value. */
  responseOf<Name extends OperationName>(operation: Name, reply: Reply<Operations[Name]["response"]>): unknown;
  /** A response as JSON text. Reuses the payload's text if possible. */
  encodeResponse<Name extends OperationName>(operation: Name, reply: Reply<Operations[Name]["response"]>): string;
  /** The text of a large response in pieces; `undefined` to use `encodeResponse`. */
  responsePieces?<Name extends OperationName>(
    operation: Name,
    reply: Reply<Operations[Name]["response"]>,
  ): readonly string[] | undefined;
  /** Reads a response. Throws `InvalidResponse`. Unknown fields are allowed. */
  decodeResponse<Name extends OperationName>(operation: Name, value: unknown): Operations[Name]["response"];
  /** An event as a value. */
  eventOf(item: StreamItem): unknown;
  /** An event as JSON text. */
  encodeEvent(item: StreamItem): string;
  /** The text of a large event in pieces, like `responsePieces`. */
  eventPieces?(item: StreamItem): readonly string[] | undefined;
  /** Reads an event. Throws `InvalidResponse`. */
  decodeEvent(value: unknown): StreamResponse;
  /** Whether an event is marked as the last of its stream. Default: the state decides. */
  endsStream?(value: unknown): boolean;
}

/**
 * Requests and responses of extension methods, which are JSON objects in every version. The extension checks them. These shapes override the
 * shapes of a version: `{ ...shapes, ...methodShapes }`.
 */
export const methodShapes: Pick<Shapes, "decodeRequest" | "responseOf" | "encodeResponse" | "responsePieces"> = {
  decodeRequest<Name extends OperationName>(_operation: Name, value: unknown): Operations[Name]["request"] {
    if (value === undefined || value === null) return {};
    if (isObject(value)) return value;
    throw invalidParams([{ field: "", description: "must be a JSON object" }]);
  },
  responseOf: (_operation, { payload }) => payload.read(),
  encodeResponse: (_operation, { payload }) => payload.json,
  responsePieces: (_operation, { payload }) => payload.pieces,
};

/** Shapes with errors. */
export interface OwnShapes extends Shapes {
  /** An error as the JSON text of an object. */
  encodeError(error: A2AError): string;
  /** Reads an error. `status` is the HTTP status of the response, or its equivalent. */
  decodeError(status: number, body: unknown): A2AError;
}

/** Checks a caller's value, received or about to be sent. Throws `InvalidParams`. */
export function checked<T>(schema: Schema<T>, value: unknown, mode: CheckMode, keeps = false): T {
  const result = check(schema, value, mode, undefined, keeps);
  if (result.ok) return result.value;
  throw invalidParams(result.violations);
}

/** Checks a server's answer. `what` is the name of the answer in the error. Throws `InvalidResponse`. */
export function answered<T>(schema: Schema<T>, value: unknown, what: string, keeps = false): T {
  const result = check(schema, value, "answer", undefined, keeps);
  if (result.ok) return result.value;
  throw new A2AError("InvalidResponse", withFields(`The peer's ${what} is not valid`, result.violations), {
    fields: result.violations,
  });
}

/** The part of a version that every client needs. */
export type ClientCodec = Pick<Codec, "version" | "aliases" | "extensionsHeader">;

/** Codecs by every version that they read. */
export function byVersion<T extends ClientCodec>(codecs: readonly T[]): ReadonlyMap<string, T> {
  return new Map(
    codecs.flatMap((codec) => [codec.version, ...(codec.aliases ?? [])].map((version) => [version, codec])),
  );
}

/** The codec of a version. An unknown version throws and is a bug, because clients are only opened with versions that they speak. */
export function codecFor<T>(codecs: ReadonlyMap<string, T>, version: string): T {
  const codec = codecs.get(version);
  if (codec === undefined) throw new A2AError("VersionNotSupported");
  return codec;
}

/** Binding-specific parts of a version, which are the members of `Codec.bindings`. */

/** The JSON-RPC part of a version (A2A 1.0 §9), in addition to its shapes. */
export interface JsonRpcWire extends Shapes {
  /** The operation of a method; `undefined` if this version has no such method. */
  operation(method: string): OperationName | undefined;
  /** The method of an operation. */
  method(operation: OperationName): string;
  /** An error as the `error` member of a JSON-RPC response. */
  encodeError(error: A2AError): unknown;
  /** Reads the `error` member of a response. */
  decodeError(value: unknown): A2AError;
}

/** A version that JSON-RPC can speak. */
export interface JsonRpcCodec extends Codec {
  readonly bindings: Codec["bindings"] & { readonly JSONRPC: JsonRpcWire };
}

/** The client's part of `JsonRpcCodec`. A bundle that imports only this part omits the server's part. */
export interface JsonRpcClientCodec extends ClientCodec {
  readonly bindings: {
    readonly JSONRPC: Pick<
      JsonRpcWire,
      "method" | "encodeRequest" | "decodeResponse" | "decodeEvent" | "endsStream" | "decodeError"
    >;
  };
}

/** Whether a version can be spoken over JSON-RPC. */
export function speaksJsonRpc(codec: Codec): codec is JsonRpcCodec {
  return codec.bindings["JSONRPC"] !== undefined;
}

type HttpMethod = "GET" | "POST" | "DELETE";

/** The method and the path of an operation over REST (A2A 1.0 §11.3). */
export interface RestRoute {
  /** The operation. */
  readonly operation: OperationName;
  /** Methods that a server accepts. A client sends the first method. */
  readonly methods: readonly [HttpMethod, ...HttpMethod[]];
  /** Path below the base. `{name}` stands for one segment, and the last segment may end in `:verb`: `/tasks/{id}:cancel`. */
  readonly path: string;
  /** Whether the fields that are not in the path are sent as the body. A POST without a body is an empty request. */
  readonly body: boolean;
  /** Parameters of the query and their types (§11.5). Other parameters are ignored. `texts` keeps all parameters, as texts. */
  readonly query?: Readonly<Record<string, "string" | "integer" | "boolean">> | "texts";
}

type QueryTypes = Readonly<Record<string, "string" | "integer" | "boolean">>;

/**
 * The routes of the operations (A2A 1.0 §11.3, 0.3 §3.5.6). Versions differ in the parameters.
 *
 * @param prefix - Precedes every path.
 * @param card - Path of the extended card.
 * @param list - Parameters of `ListTasks` in addition to the common ones.
 * @param configs - Parameters of `ListTaskPushNotificationConfigs`.
 */
export function restRoutes(
  prefix: string,
  card: string,
  list: QueryTypes = {},
  configs?: QueryTypes,
): readonly RestRoute[] {
  const route = (operation: CoreName, methods: RestRoute["methods"], path: string, query?: QueryTypes): RestRoute => ({
    operation,
    methods,
    path: prefix + path,
    body: methods[0] === "POST" && operation !== "SubscribeToTask",
    ...(query !== undefined && { query }),
  });
  const filters: QueryTypes = { contextId: "string", status: "string", ...list, includeArtifacts: "boolean" };
  const page: QueryTypes = { pageSize: "integer", pageToken: "string", historyLength: "integer" };
  const ofTask = "/tasks/{taskId}/pushNotificationConfigs";
  return [
    route("SendMessage", ["POST"], "/message:send"),
    route("SendStreamingMessage", ["POST"], "/message:stream"),
    route("GetTask", ["GET"], "/tasks/{id}", { historyLength: "integer" }),
    route("ListTasks", ["GET"], "/tasks", { ...filters, ...page }),
    route("CancelTask", ["POST"], "/tasks/{id}:cancel"),
    // The texts of both specifications require POST (1.0 §5.3, §11.3.2), but the annotations of their protos require GET. Servers accept either
    // or both. Clients send POST first, because the official clients do.
    route("SubscribeToTask", ["POST", "GET"], "/tasks/{id}:subscribe"),
    route("CreateTaskPushNotificationConfig", ["POST"], ofTask),
    route("GetTaskPushNotificationConfig", ["GET"], `${ofTask}/{id}`),
    route("ListTaskPushNotificationConfigs", ["GET"], ofTask, configs),
    route("DeleteTaskPushNotificationConfig", ["DELETE"], `${ofTask}/{id}`),
    route("GetExtendedAgentCard", ["GET"], card),
  ];
}

/** The route of a method of an extension, the same in every version. */
export function routeOfMethod({ name, rest: { method, path } }: MethodRoute): RestRoute {
  return { operation: name, methods: [method], path, body: method === "POST", query: "texts" };
}

/** The REST part of a version (A2A 1.0 §11), in addition to its shapes. An error is the whole body of a response. */
export interface RestWire extends OwnShapes {
  /** The routes of the operations. */
  readonly routes: readonly RestRoute[];
  /** Routes that are also served next to the base and at the root of the host, unless the path would belong to two agents. */
  readonly elsewhere?: readonly RestRoute[];
  /** Media type of a successful response. */
  readonly mediaType: string;
  /** Shapes that replace the general shapes for a request and its answer, in versions with two JSON formats. */
  readonly otherShapes?: (operation: OperationName, request: unknown) => Partial<Shapes> | undefined;
  /** Whether a list of tasks is an array, with next page and length in headers. Default: an object that contains all three. */
  readonly listsAreArrays?: boolean;
}

/** A version that REST can speak. */
export interface RestCodec extends Codec {
  readonly bindings: Codec["bindings"] & { readonly "HTTP+JSON": RestWire };
}

/** The client's part of `RestCodec`. */
export interface RestClientCodec extends ClientCodec {
  readonly bindings: {
    readonly "HTTP+JSON": Pick<
      RestWire,
      "routes" | "mediaType" | "encodeRequest" | "decodeResponse" | "decodeEvent" | "endsStream" | "decodeError"
    > &
      Pick<RestWire, "listsAreArrays">;
  };
}

/** Whether a version can be spoken over REST. */
export function speaksRest(codec: Codec): codec is RestCodec {
  return codec.bindings["HTTP+JSON"] !== undefined;
}

/** The gRPC part of a version (A2A 1.0 §10). Messages are ProtoJSON, and errors have the format of REST (§11.6). */
export interface GrpcWire extends OwnShapes {
  /** Statuses of errors, by code, if they differ from A2A 1.0 §5.4. */
  readonly statuses?: Readonly<Partial<Record<WireErrorCode, string>>>;
}

/** A version with its own rules for gRPC. Other versions use their general shapes. */
export interface GrpcCodec extends Codec {
  readonly bindings: Codec["bindings"] & { readonly GRPC: GrpcWire };
}

/** The shapes that gRPC uses for a version, either specific to gRPC or the general shapes. */
export function grpcWire(codec: Codec): GrpcWire {
  return speaksGrpc(codec) ? codec.bindings.GRPC : codec.shapes;
}

function speaksGrpc(codec: Codec): codec is GrpcCodec {
  return codec.bindings["GRPC"] !== undefined;
}
