import {
  A2AError,
  check,
  invalidParams,
  withFields,
  type AgentCard,
  type CheckMode,
  type Schema,
  type StreamResponse,
} from "../model/index.ts";
import { isObject } from "../model/schema.ts";
import type { AgentService, OperationName, Operations, Reply, StreamItem } from "../protocol/index.ts";

/**
 * What a version of the protocol is on the wire. Each version implements it in a room of its own. Bindings are given codecs, and
 * know no version by name.
 */
export interface Codec {
  /** `Major.Minor`. */
  readonly version: string;
  /** Further versions that it reads. */
  readonly aliases?: readonly string[];
  /** Requests, responses, events and errors, for every binding that is not in `bindings`. */
  readonly shapes: OwnShapes;
  /**
   * What the version needs for single bindings, by their names on a card. Each binding defines the type of its member, and
   * whether it can do without it.
   */
  readonly bindings: Readonly<Record<string, unknown>>;
  /** Whether the tenant is a part of the address, because requests have no field for it. */
  readonly tenantInPath?: boolean;
  /** Further paths of the card, below a base, where clients of this version look. */
  readonly cardPaths?: readonly string[];
  /** Path of the extended card (§3.1.11), for a GET, at servers of this version that have no method for it. */
  readonly extendedCardPath?: string;
  /** How a webhook of this version is written. */
  readonly webhook: WebhookWire;
  /** Header with the URIs of extensions, in lower case. Default: `a2a-extensions`. */
  readonly extensionsHeader?: string;
  /** Writes a card. */
  encodeCard(card: AgentCard): unknown;
  /** Reads a card of this version. Throws `InvalidResponse`. */
  decodeCard(value: unknown): AgentCard;
  /** Wraps the service of a server, where callers of this version expect it to behave differently. */
  adapt?(service: AgentService): AgentService;
  /** Wraps the service of a client, where servers of this version behave differently. */
  adaptClient?(service: AgentService): AgentService;
}

/** The body of a webhook. It is written by `Codec.shapes`. */
export interface WebhookWire {
  /** Its media type. */
  readonly mediaType: string;
  /** What it has: each event (A2A 1.0 §4.3.3), or the task as it is now (0.3 §9.5). */
  readonly sends: "event" | "task";
  /** The header with the URIs of the active extensions (A2A 1.0 §3.2.6), in lower case. */
  readonly extensions: string;
}

/** The version of a request that names none (A2A 1.0 §3.6.2). */
export const versionOfSilence = "0.3";

/** How requests, responses and events are written. Values are those of `JSON.parse`. */
export interface Shapes {
  /** Reads a request. Throws `InvalidParams` with every wrong field. May change the value in place. */
  decodeRequest<Name extends OperationName>(operation: Name, value: unknown): Operations[Name]["request"];
  /** Writes a request. Throws `InvalidParams` for what a server would refuse. */
  encodeRequest<Name extends OperationName>(operation: Name, request: Operations[Name]["request"]): unknown;
  /** A response as a value. */
  responseOf<Name extends OperationName>(operation: Name, reply: Reply<Operations[Name]["response"]>): unknown;
  /** A response as JSON text. It uses the text of the payload where it can. */
  encodeResponse<Name extends OperationName>(operation: Name, reply: Reply<Operations[Name]["response"]>): string;
  /** The same text in pieces, where it is large; `undefined` where `encodeResponse` has to be used. */
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
  /** The same text in pieces: see `responsePieces`. */
  eventPieces?(item: StreamItem): readonly string[] | undefined;
  /** Reads an event. Throws `InvalidResponse`. */
  decodeEvent(value: unknown): StreamResponse;
  /** Whether an event says that it is the last one of its stream. Default: its state decides. */
  endsStream?(value: unknown): boolean;
}

/**
 * The requests and responses of the methods of extensions: JSON objects, the same in every version. The extension checks what they are.
 * They take the place of those of a version: `{ ...shapes, ...methodShapes }`.
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
  /** Reads an error. `status` is the HTTP status of the response, or the one that means the same. */
  decodeError(status: number, body: unknown): A2AError;
}

/** Checks what a caller sent, or is about to send. Throws `InvalidParams`. */
export function checked<T>(schema: Schema<T>, value: unknown, mode: CheckMode): T {
  const result = check(schema, value, mode);
  if (result.ok) return result.value;
  throw invalidParams(result.violations);
}

/** Checks what a server answered. `what` names it in the error. Throws `InvalidResponse`. */
export function answered<T>(schema: Schema<T>, value: unknown, what: string): T {
  const result = check(schema, value, "answer");
  if (result.ok) return result.value;
  throw new A2AError("InvalidResponse", withFields(`The peer's ${what} is not valid`, result.violations), {
    fields: result.violations,
  });
}

/** What every client needs of a version. */
export type ClientCodec = Pick<Codec, "version" | "aliases" | "extensionsHeader">;

/** Codecs by every version that they read. */
export function byVersion<T extends ClientCodec>(codecs: readonly T[]): ReadonlyMap<string, T> {
  return new Map(
    codecs.flatMap((codec) => [codec.version, ...(codec.aliases ?? [])].map((version) => [version, codec])),
  );
}
