import type { Principal } from "./service.ts";
import { A2AError } from "../model/index.ts";

/** HTTP as bindings see it, on every runtime. It needs no `Request` and `Response` objects, which are expensive on Node. */

/** A request of any host. */
export interface UniversalRequest {
  /** HTTP method in upper case. */
  readonly method: string;
  /** Path and query of the request line, percent-encoded: `/tasks/a%20b?historyLength=0`. */
  readonly url: string;
  /** Value of a header, by its lower-case name. Several headers of one name are joined by `, `. */
  header(name: string): string | undefined;
  /** All headers as received, with their names. Absent: this host only finds headers by name. */
  fields?(): Iterable<readonly [name: string, value: string]>;
  /**
   * The body as text. `limit`: maximum size in bytes. `budget`: memory of all bodies being received. Throws `RequestTooLarge`, `ParseError`
   * unless it is UTF-8, and `Unavailable` if the budget has no room.
   */
  text(limit: number, budget?: BodyBudget): Promise<string>;
  /** Whether `text()` serializes the body that a framework has parsed, so that signatures of the body fail. Default false. */
  readonly rewritten?: boolean;
  /** Passes the body to `reader` in pieces. Call either this or `text`, once. Absent: this host has only `text`. */
  read?(reader: ByteReader): ByteFlow;
  /** Aborted when the client disconnects. Created on first read. */
  readonly signal: AbortSignal;
  /** Facts about the client, for authenticators. Absent: unknown. */
  readonly facts?: RequestFacts | undefined;
  /** The connection that this request shares with other requests, for example over HTTP/2. */
  readonly connection?: object | undefined;
  /** Whether the response may have `trailers`, for example over HTTP/2. Default false. */
  readonly takesTrailers?: boolean;
}

/** The reader of a body in pieces. */
export interface ByteReader {
  /** Called with each piece. */
  chunk(bytes: Uint8Array): void;
  /** Called when the body is complete. */
  end(): void;
  /** Called if the client disconnects before the body is complete. */
  gone(): void;
}

/** Controls how fast a body in pieces is received. */
export interface ByteFlow {
  /** Pauses the pieces, so that the sender has to wait. */
  pause(): void;
  /** Resumes the pieces. None arrives before the first call. */
  resume(): void;
  /** Called when no more pieces are wanted. Absent: the host ends the request when it has been answered. */
  close?(): void;
}

/** The target of a streamed body. */
export interface Sink {
  /** Takes a chunk. `false`: the client reads too slowly, so wait for `ready()` before the next one. */
  write(chunk: string | Uint8Array): boolean;
  /** Resolves when there is room again, or the client has disconnected. */
  ready(): Promise<void>;
  /** Whether the client has disconnected. Writes then do nothing. */
  readonly closed: boolean;
  /** Calls `run` once when the client disconnects, or immediately if it already has. */
  onClose(run: () => void): void;
}

/** Writes a body. When it resolves the host ends the response. When it rejects the host resets the connection. */
export type BodyWriter = (sink: Sink) => Promise<void>;

/** A response for any host. */
export interface UniversalResponse {
  /** HTTP status. */
  readonly status: number;
  /** Headers by their lower-case names. */
  readonly headers: Readonly<Record<string, string>>;
  /**
   * The body. For a writer, the host sends the headers first, then calls the writer, even if the client has disconnected, so that the writer can
   * release its source. HEAD requests only get the headers.
   */
  readonly body?: string | Uint8Array | BodyWriter;
  /** Headers after the body, by their lower-case names. Called when the body is written. Only if the request `takesTrailers`. */
  readonly trailers?: () => Readonly<Record<string, string>>;
}

/** Answers requests. Unknown routes get a 404 whose body is an error of the protocol. */
export type UniversalHandler = (request: UniversalRequest) => Promise<UniversalResponse> | UniversalResponse;

/** Facts about the sender of a request, for authenticators. Each fact is looked up on access. */
export interface RequestFacts {
  /** IP address of the client, or of the nearest proxy that the host does not trust. */
  readonly remoteAddress?: string | undefined;
  /** Whether the client's connection is encrypted: with this server, or with a proxy that the host trusts. */
  readonly secure?: boolean | undefined;
  /** The client certificate, if the server requested one (mutual TLS). */
  readonly certificate?: PeerCertificate | undefined;
  /** The user that the host's framework has found, such as `request.user` of Express and Fastify. The framework defines its shape. */
  readonly user?: unknown;
  /** The caller from the option `principal` of a mount. `hostUser()` of `@parley/a2a/auth` accepts it. */
  readonly principal?: HostPrincipal | Promise<HostPrincipal>;
}

/** The caller as the host's framework knows it. A falsy value means no caller: `request.user && { subject: request.user.id }`. */
export type HostPrincipal = Principal | false | null | undefined | "" | 0;

/** A client's certificate of TLS (RFC 5280). */
export interface PeerCertificate {
  /** Whether the host has verified it with its certificate authorities. If false, it proves possession of its key, but no name. */
  readonly authorized: boolean;
  /** The certificate itself, in DER. Absent if a proxy forwards only its data. */
  readonly der?: Uint8Array;
  /** SHA-256 of the DER, as lower-case hexadecimal digits. */
  readonly fingerprint: string;
  /** Its subject, by the short names of attributes: `{ CN: "agent-7", O: "Example" }`. */
  readonly subject: Readonly<Record<string, string | readonly string[]>>;
  /** Its alternative names, with their kinds: `DNS:agent.example.com`, `URI:spiffe://example.com/agent`. */
  readonly names: readonly string[];
  /** When it expires, in milliseconds since the Unix epoch. Absent: unknown. */
  readonly expires?: number;
  /** Fingerprints of the authorities that have signed it, nearest first. Absent: unknown. */
  readonly authorities?: readonly string[];
}

/** Request bodies while they are received, on every host. */

/** The reader of a body, which the budget resumes or stops. */
export interface BodyReader {
  /** Called when there is room: continue reading. */
  resume(): void;
  /** Called when the server rejects the body: stop reading and answer with `error`. */
  refuse(error: A2AError): void;
}

/** Limits the memory of all bodies that are being received. */
export interface BodyBudget {
  /** Registers a body. `connection`: the connection that it shares with other bodies, for example over HTTP/2. */
  enter(reader: BodyReader, connection?: object): BodyPlace;
}

/** One body in the budget. */
export interface BodyPlace {
  /** Reports received bytes. A body that arrives too slowly can be rejected to make room for others. */
  came(bytes: number): void;
  /**
   * Declares the memory that the body holds now, and its maximum, in bytes. `false`: read nothing until `resume()` or `refuse()`. Throws
   * `Unavailable` if too many bodies wait.
   */
  hold(held: number, most: number): boolean;
  /** Reduces the maximum memory of the body. */
  shrink(most: number): void;
  /** Removes the body from the budget, when it is complete or no longer needed. */
  leave(): void;
}

/** Size in bytes up to which a body needs no room in the budget before it is read. */
export const smallBody: number = 64 * 1024;

/** Used without a budget. */
const anyPlace: BodyPlace = {
  came() {},
  hold: () => true,
  shrink() {},
  leave() {},
};

/** Collects a body in one buffer, under its own size limit and under the budget of all bodies. */
export class BodyBytes {
  readonly #limit: number;
  readonly #announced: number | undefined;
  readonly #place: BodyPlace;
  /** A body in one piece, the usual case, is not copied. */
  #only: Uint8Array | undefined;
  #bytes: GrowingBytes | undefined;
  #size = 0;

  /** `limit`: maximum size in bytes. `announced`: the `Content-Length`. `place`: its place in the budget. Default: no budget. */
  constructor(limit: number, announced: number | undefined, place: BodyPlace = anyPlace) {
    this.#limit = limit;
    this.#announced = announced;
    this.#place = place;
  }

  /**
   * Whether reading may start; if not, wait for `resume()` or `refuse()`. Throws `RequestTooLarge` if more than `limit` is announced, and
   * `Unavailable`.
   */
  begin(): boolean {
    const announced = this.#announced ?? 0;
    if (announced > this.#limit) throw this.#tooLarge();
    return announced <= smallBody || this.#place.hold(0, announced);
  }

  /** Takes a piece. `false`: wait for `resume()` or `refuse()`. Throws `RequestTooLarge` and `Unavailable`. */
  push(piece: Uint8Array): boolean {
    this.#size += piece.length;
    if (this.#size > this.#limit) throw this.#tooLarge();
    this.#place.came(piece.length);
    const held = this.#keep(piece);
    if (held === undefined) return true;
    return this.#place.hold(held, Math.max(held, this.#announced ?? (this.#size > smallBody ? this.#limit : 0)));
  }

  /** Returns the memory that the body holds now, if it has changed. */
  #keep(piece: Uint8Array): number | undefined {
    if (this.#size === piece.length && piece.buffer.byteLength <= 4 * piece.length) {
      this.#only = piece;
      return piece.length;
    }
    // A client may send more than it announced.
    const bytes = (this.#bytes ??= new GrowingBytes(Math.min(this.#announced ?? this.#limit, this.#limit)));
    const before = bytes.capacity;
    if (this.#only !== undefined) bytes.append(this.#only);
    this.#only = undefined;
    bytes.append(piece);
    return bytes.capacity === before ? undefined : bytes.capacity;
  }

  /** The complete body. */
  take(): Uint8Array {
    const bytes = this.#only ?? this.#bytes?.view() ?? new Uint8Array(0);
    this.leave();
    return bytes;
  }

  /** Releases the buffer, and the place in the budget. */
  leave(): void {
    this.#only = this.#bytes = undefined;
    this.#place.leave();
  }

  #tooLarge(): A2AError {
    return bodyTooLarge("Request body", this.#limit);
  }
}

/** The error for a body or a message of more than `limits.bodyBytes`. It names the option that raises the limit. */
export function bodyTooLarge(what: string, limit: number): A2AError {
  const cure = "Send files as a url, raise limits.bodyBytes of the server, or set its option blobs for large files";
  return new A2AError("RequestTooLarge", `${what} larger than ${limit} bytes. ${cure}`);
}

const none = new Uint8Array(0);

/** Size of the first buffer in bytes. Each next one is twice as large. */
const smallest = 1024;

/** Collects bytes in one buffer. It copies the pieces, because a piece can be a view of a much larger buffer. */
export class GrowingBytes {
  readonly #most: number;
  #bytes: Uint8Array = none;
  #length = 0;

  /** `most`: the expected number of bytes. The buffer grows only if more arrive. */
  constructor(most: number) {
    this.#most = most;
  }

  /** Number of bytes that have arrived. */
  get length(): number {
    return this.#length;
  }

  /** Size of the buffer in bytes. */
  get capacity(): number {
    return this.#bytes.length;
  }

  /** Copies a piece to the end. */
  append(piece: Uint8Array): void {
    const length = this.#length + piece.length;
    if (length > this.#bytes.length) {
      const twice = Math.max(smallest, 2 * this.#bytes.length, length);
      const larger = new Uint8Array(length > this.#most ? twice : Math.min(this.#most, twice));
      larger.set(this.#bytes.subarray(0, this.#length));
      this.#bytes = larger;
    }
    this.#bytes.set(piece, this.#length);
    this.#length = length;
  }

  /** The bytes so far, without a copy. The view is valid until the next `append()`. */
  view(): Uint8Array {
    return this.#bytes.subarray(0, this.#length);
  }
}

/**
 * Whether a browser sent the request from a page of another origin than `url`, according to `Sec-Fetch-Site` (Fetch Metadata) or
 * `Origin` (RFC 6454 §7). Programs other than browsers send neither header.
 */
export function isOfOtherPage(request: UniversalRequest, url: string): boolean {
  const site = request.header("sec-fetch-site");
  if (site !== undefined && site !== "same-origin" && site !== "none") return true;
  const origin = request.header("origin");
  if (origin === undefined) return false;
  const own = /^https?:\/\/[^/?#]*/.exec(url)?.[0];
  return origin !== own && origin.replace(/^https?:\/\//, "") !== request.header("host");
}
