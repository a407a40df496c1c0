import type { A2AError, AgentCard, StreamResponse } from "../model/index.ts";
import type { AgentService, OperationName, Operations, Reply, StreamItem } from "../protocol/index.ts";

/**
 * What a version of the protocol is on the wire. One closed room a version implements it; bindings are handed codecs and know
 * no version by name, and a version knows a binding only where it has something to say of it.
 */
export interface Codec {
  /** `Major.Minor`. */
  readonly version: string;
  /** Further versions whose requests it reads as its own. */
  readonly aliases?: readonly string[];
  /** What requests, answers, events and errors look like, to every binding that the version says nothing else of. */
  readonly shapes: OwnShapes;
  /**
   * What else the version says for one binding, by the name that the binding has on a card. The binding says what that is, and
   * whether it can do without.
   */
  readonly bindings: Readonly<Record<string, unknown>>;
  /** Requests have no field for a tenant: it is a part of the address. */
  readonly tenantInPath?: boolean;
  /** Where clients of this version look for a card, below a base, beside the place of every version. */
  readonly cardPaths?: readonly string[];
  /** Where servers of this version may have the card of authenticated callers (§3.1.11) for a GET, beside their address, where they have no method for it. */
  readonly extendedCardPath?: string;
  /** The header that names extensions, in lower case. Default: `a2a-extensions`. */
  readonly extensionsHeader?: string;
  /** A card as this version writes it. */
  encodeCard(card: AgentCard): unknown;
  /** Reads a card of this version; throws `InvalidResponse`. */
  decodeCard(value: unknown): AgentCard;
  /** A server's service as callers of this version expect it to behave, where that differs. */
  adapt?(service: AgentService): AgentService;
  /** A peer's service of this version as callers here expect it to behave, where that differs. */
  adaptClient?(service: AgentService): AgentService;
}

/** What a request without a version means to the letter of A2A 1.0 §3.6.2. */
export const versionOfSilence = "0.3";

/** What requests, answers and events look like. Values are what `JSON.parse` gives. */
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
  /** An event as JSON text. */
  encodeEvent(item: StreamItem): string;
  /** The text of a large event where it need not be joined, as `responsePieces`. */
  eventPieces?(item: StreamItem): readonly string[] | undefined;
  /** Reads an event of a server; throws `InvalidResponse`. */
  decodeEvent(value: unknown): StreamResponse;
  /** Whether a peer's event says by itself that nothing follows it on its stream. Default: its state tells. */
  endsStream?(value: unknown): boolean;
}

/** Shapes with errors. */
export interface OwnShapes extends Shapes {
  /** An error as JSON text, of an object. */
  encodeError(error: A2AError): string;
  /** Back from that, parsed. `status`: of HTTP, that of the answer or the one that means the same. */
  decodeError(status: number, body: unknown): A2AError;
}

/** What every client needs to know of a version. */
export type ClientCodec = Pick<Codec, "version" | "aliases" | "extensionsHeader">;

/** Codecs by every version that they read. */
export function byVersion<T extends ClientCodec>(codecs: readonly T[]): ReadonlyMap<string, T> {
  return new Map(
    codecs.flatMap((codec) => [codec.version, ...(codec.aliases ?? [])].map((version) => [version, codec])),
  );
}
