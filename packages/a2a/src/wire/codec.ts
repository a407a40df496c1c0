import type { A2AError, AgentCard, StreamResponse, WireErrorCode } from "../model/index.ts";
import type { AgentService, OperationName, Operations, Reply, StreamItem } from "../protocol/index.ts";

/**
 * What a version of the protocol is to the bindings (D5): names, routes, shapes. One closed room a version implements
 * it; bindings are handed codecs and know no version by name.
 */
export interface Codec {
  /** `Major.Minor`. */
  readonly version: string;
  /** Further versions whose requests it reads as its own. */
  readonly aliases?: readonly string[];
  readonly jsonrpc: JsonRpcWire;
  readonly rest: RestWire;
  /** ProtoJSON as gRPC carries it, where its requests are not those of REST. */
  readonly grpc?: Shapes;
  /** Statuses of errors on gRPC, by name, where they are not those of A2A 1.0 §5.4. */
  readonly grpcStatuses?: Readonly<Partial<Record<WireErrorCode, string>>>;
  /** Requests have no field for a tenant: it is a part of the address. */
  readonly tenantInPath?: boolean;
  /** Where clients of this version look for a card, below a base, beside the place of every version. */
  readonly cardPaths?: readonly string[];
  /** The header that names extensions, in lower case. Default: `a2a-extensions`. */
  readonly extensionsHeader?: string;
  encodeCard(card: AgentCard): unknown;
  decodeCard(value: unknown): AgentCard;
  /** A server's service as callers of this version expect it to behave, where that differs. */
  adapt?(service: AgentService): AgentService;
  /** A peer's service of this version as callers here expect it to behave, where that differs. */
  adaptClient?(service: AgentService): AgentService;
}

/**
 * What requests, answers and events look like. Values are what `JSON.parse` gives. Where a version has two of these, the
 * one of REST is ProtoJSON, which gRPC carries too.
 */
export interface Shapes {
  /** The request of an operation; throws `InvalidParams` with every bad field. May change the value in place. */
  decodeRequest<Name extends OperationName>(operation: Name, value: unknown): Operations[Name]["request"];
  /** The request as it may go out; throws `InvalidParams` for what a server would refuse. */
  encodeRequest<Name extends OperationName>(operation: Name, request: Operations[Name]["request"]): unknown;
  /** An answer as a value. */
  responseOf<Name extends OperationName>(operation: Name, reply: Reply<Operations[Name]["response"]>): unknown;
  /** An answer as JSON text: `responseOf`, by way of the text that is at hand where that can be. */
  encodeResponse<Name extends OperationName>(operation: Name, reply: Reply<Operations[Name]["response"]>): string;
  /** The same text where it is large and need not be joined; `undefined` where `encodeResponse` is to be asked. */
  responsePieces?<Name extends OperationName>(
    operation: Name,
    reply: Reply<Operations[Name]["response"]>,
  ): readonly string[] | undefined;
  /** A peer's answer; throws `InvalidResponse`. Lenient: unknown fields pass. */
  decodeResponse<Name extends OperationName>(operation: Name, value: unknown): Operations[Name]["response"];
  /** An event as a value, and as JSON text. */
  eventOf(item: StreamItem): unknown;
  encodeEvent(item: StreamItem): string;
  /** The text of a large event where it need not be joined, as `responsePieces`. */
  eventPieces?(item: StreamItem): readonly string[] | undefined;
  decodeEvent(value: unknown): StreamResponse;
  /** Whether a peer's event says by itself that nothing follows it on its stream. Default: its state tells. */
  endsStream?(value: unknown): boolean;
}

export interface JsonRpcWire extends Shapes {
  /** Clients that ask for a stream read events alone, where the answer is an error too. */
  readonly streamsErrors?: boolean;
  /** The operation that a method names, if this version has it. */
  operation(method: string): OperationName | undefined;
  method(operation: OperationName): string;
  /** An error as the `error` member of a JSON-RPC response, and back. */
  encodeError(error: A2AError): unknown;
  decodeError(value: unknown): A2AError;
}

/** What every client needs to know of a version. */
export type ClientCodec = Pick<Codec, "version" | "aliases" | "extensionsHeader">;

/** Codecs by every version that they read. */
export function byVersion<T extends ClientCodec>(codecs: readonly T[]): ReadonlyMap<string, T> {
  return new Map(
    codecs.flatMap((codec) => [codec.version, ...(codec.aliases ?? [])].map((version) => [version, codec])),
  );
}

/** As much of a codec as a JSON-RPC client needs: one that is made of this alone leaves the server's half behind. */
export interface JsonRpcClientCodec extends ClientCodec {
  readonly jsonrpc: Pick<
    JsonRpcWire,
    "method" | "encodeRequest" | "decodeResponse" | "decodeEvent" | "endsStream" | "decodeError"
  >;
}

/** As much of a codec as a REST client needs. */
export interface RestClientCodec extends ClientCodec {
  readonly rest: Pick<
    RestWire,
    "routes" | "mediaType" | "encodeRequest" | "decodeResponse" | "decodeEvent" | "endsStream" | "decodeError"
  >;
}

export interface RestRoute {
  readonly operation: OperationName;
  /** The first is what a client sends. */
  readonly methods: readonly ("GET" | "POST" | "DELETE")[];
  /** Segments after the base; `{name}` takes a segment, and the last one may end in a literal `:verb`. E.g. `/tasks/{id}:cancel`. */
  readonly path: string;
  /** Whether the rest of the request is the body; a POST without one means an empty request all the same. */
  readonly body: boolean;
  /** What the query may carry, by name, with the type that its text stands for (§11.5); other parameters are ignored. */
  readonly query?: Readonly<Record<string, "string" | "integer" | "boolean">>;
}

export interface RestWire extends Shapes {
  readonly routes: readonly RestRoute[];
  /** Routes that are found beside the base and at the root of the host as well, where no two agents would answer. */
  readonly elsewhere?: readonly RestRoute[];
  /** Media type of a successful answer. */
  readonly mediaType: string;
  /** An error as the whole body, as JSON text, and back. */
  encodeError(error: A2AError): string;
  decodeError(status: number, body: unknown): A2AError;
}
