import type { A2AError, WireErrorCode } from "../model/index.ts";
import type { MethodRoute, OperationName } from "../protocol/index.ts";
import type { ClientCodec, Codec, OwnShapes, Shapes } from "./codec.ts";

/** What each known binding needs of a version: the members of `Codec.bindings`. */

/** What JSON-RPC (A2A 1.0 §9) needs of a version, in addition to its shapes. */
export interface JsonRpcWire extends Shapes {
  /** The operation of a method; `undefined` where this version has no such method. */
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

/** The part of it that a client needs. A bundle with this part alone leaves the server's part out. */
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

/** The method and the path of an operation over REST (A2A 1.0 §11.3). */
export interface RestRoute {
  /** The operation. */
  readonly operation: OperationName;
  /** Methods that a server accepts. A client sends the first one. */
  readonly methods: readonly ("GET" | "POST" | "DELETE")[];
  /** Path below the base. `{name}` stands for one segment, and the last segment may end in `:verb`: `/tasks/{id}:cancel`. */
  readonly path: string;
  /** Whether the fields that are not in the path are sent as the body. A POST without a body is an empty request. */
  readonly body: boolean;
  /** Parameters of the query and their types (§11.5). Other parameters are ignored. `texts`: all are taken, as they are. */
  readonly query?: Readonly<Record<string, "string" | "integer" | "boolean">> | "texts";
}

/** The route of a method of an extension, the same in every version. */
export function routeOfMethod({ name, rest: { method, path } }: MethodRoute): RestRoute {
  return { operation: name, methods: [method], path, body: method === "POST", query: "texts" };
}

/** What REST (A2A 1.0 §11) needs of a version, in addition to its shapes. An error is the whole body of a response. */
export interface RestWire extends OwnShapes {
  /** The routes of the operations. */
  readonly routes: readonly RestRoute[];
  /** Routes that are served beside the base and at the root of the host too, unless the path would belong to two agents. */
  readonly elsewhere?: readonly RestRoute[];
  /** Media type of a successful response. */
  readonly mediaType: string;
  /** Shapes by which a request is read and answered in place of those above, for versions with two forms of JSON. */
  readonly otherShapes?: (operation: OperationName, request: unknown) => Shapes | undefined;
  /** Whether a list of tasks is an array. Headers then tell its next page and its length. Default: an object that tells them. */
  readonly listsAreArrays?: boolean;
}

/** A version that REST can speak. */
export interface RestCodec extends Codec {
  readonly bindings: Codec["bindings"] & { readonly "HTTP+JSON": RestWire };
}

/** The part of it that a client needs. */
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

/** What gRPC (A2A 1.0 §10) needs of a version: its messages as ProtoJSON, and its errors as REST writes them (§11.6). */
export interface GrpcWire extends OwnShapes {
  /** Statuses of errors, by code, where they differ from A2A 1.0 §5.4. */
  readonly statuses?: Readonly<Partial<Record<WireErrorCode, string>>>;
}

/** A version that has rules of its own for gRPC. Any other version is spoken in its general shapes. */
export interface GrpcCodec extends Codec {
  readonly bindings: Codec["bindings"] & { readonly GRPC: GrpcWire };
}

/** What gRPC speaks of a version: its own shapes for gRPC, or its general shapes. */
export function grpcWire(codec: Codec | GrpcCodec): GrpcWire {
  const { GRPC = codec.shapes } = codec.bindings as { readonly GRPC?: GrpcWire };
  return GRPC;
}
