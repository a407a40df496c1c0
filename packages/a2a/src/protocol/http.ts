import type { Bytes } from "../base/index.ts";
import type { BodyBudget } from "./body.ts";

/**
 * HTTP as the bindings see it, on every runtime. A host turns its own request into this one and carries the answer out,
 * without a `Request` or `Response` in between where it can do without (D15).
 */

export interface UniversalRequest {
  readonly method: string;
  /** Path and query as they stand in the request line, percent-encoded: `/tasks/a%20b?historyLength=0`. */
  readonly url: string;
  /** A header by its lower-case name; several of one name come joined by `, `. */
  header(name: string): string | undefined;
  /**
   * The body as text. Stops reading and throws `RequestTooLarge` as soon as more than `limit` bytes came;
   * throws `ParseError` when they are no UTF-8. `budget` bounds what all bodies hold while they come in; `BodyBytes` gathers
   * one under both.
   */
  text(limit: number, budget?: BodyBudget): Promise<string>;
  /**
   * Hands the body to `reader` piece by piece, for bindings that cut it into messages themselves. Called once, and not
   * beside `text`. Absent: this host has bodies as text alone.
   */
  read?(reader: ByteReader): ByteFlow;
  /** Aborted when the peer is gone. Made when first asked for. */
  readonly signal: AbortSignal;
  /** Address of the peer, where the host knows it. */
  readonly remoteAddress?: string;
  /** What this request shares with others of the same time: its connection of HTTP/2. */
  readonly connection?: object | undefined;
  /** Whether the answer may have `trailers`, as over HTTP/2. Default: it may not. */
  readonly takesTrailers?: boolean;
}

/** Who reads a body in pieces. */
export interface ByteReader {
  chunk(bytes: Uint8Array): void;
  /** The body is whole. */
  end(): void;
  /** The peer is gone before it sent the whole body. */
  gone(): void;
}

/** Of a body that comes in pieces. */
export interface ByteFlow {
  /** Lets what is to come wait with its sender. */
  pause(): void;
  /** Asks for more. Nothing comes before the first call. */
  resume(): void;
}

/** Where a streamed body goes. */
export interface Sink {
  /** Takes a chunk; `false` means that the peer is behind: wait for `ready()` before the next one. */
  write(chunk: string | Uint8Array): boolean;
  /** Resolves when there is room again, or when the peer is gone. */
  ready(): Promise<void>;
  /** Whether the peer is gone; writes then go nowhere. */
  readonly closed: boolean;
  /** Calls `run` once, when the peer goes; at once when it has gone. */
  onClose(run: () => void): void;
}

/** Writes the body; the host ends the response when it resolves, and breaks the connection off when it rejects. */
export type BodyWriter = (sink: Sink) => Promise<void>;

export interface UniversalResponse {
  readonly status: number;
  /** Lower-case names. */
  readonly headers: Readonly<Record<string, string>>;
  /**
   * Absent: no body. A writer's headers go out before its first byte. It is called even where the peer is gone already, so
   * that it lets go of its source; and to HEAD a host sends the headers alone.
   */
  readonly body?: string | Bytes | BodyWriter;
  /** What is sent after the body, with lower-case names: asked for when the body is written. Only where the request `takesTrailers`. */
  readonly trailers?: () => Readonly<Record<string, string>>;
}

/** Answers every request: what it has no route for with 404 in the words of the protocol. */
export type UniversalHandler = (request: UniversalRequest) => Promise<UniversalResponse> | UniversalResponse;
