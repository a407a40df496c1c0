import type { BodyBudget } from "./body.ts";
import type { Principal } from "./service.ts";

/**
 * HTTP as the bindings see it, on every runtime. A host turns the request of its runtime into a `UniversalRequest` and
 * sends the `UniversalResponse`. Neither needs a `Request` or `Response` object, which are expensive on Node.
 */

/** A request of any host. */
export interface UniversalRequest {
  /** HTTP method in upper case. */
  readonly method: string;
  /** Path and query of the request line, percent-encoded: `/tasks/a%20b?historyLength=0`. */
  readonly url: string;
  /** Value of a header, by its lower-case name. Several headers of one name are joined by `, `. */
  header(name: string): string | undefined;
  /** All headers as they came, each with its name. Absent: this host finds headers by name alone. */
  fields?(): Iterable<readonly [name: string, value: string]>;
  /**
   * The body as text. `limit` is the largest body in bytes. `budget` limits what all bodies hold while they are received;
   * `BodyBytes` collects a body under both.
   *
   * @throws A2AError `RequestTooLarge` as soon as more than `limit` bytes came, `ParseError` where they are not UTF-8,
   * `Unavailable` where the budget has no room.
   */
  text(limit: number, budget?: BodyBudget): Promise<string>;
  /**
   * Whether `text()` writes again what a parser of a framework has read. It is not the text that was sent then, so no signature of the
   * body holds. Default false.
   */
  readonly rewritten?: boolean;
  /**
   * Passes the body to `reader` in pieces, for bindings that split it into messages themselves. Call either this or `text`,
   * and only once. Absent: this host has bodies as text alone.
   */
  read?(reader: ByteReader): ByteFlow;
  /** Aborted when the client is gone. It is made when it is first read. */
  readonly signal: AbortSignal;
  /** What the host knows of the client, for authenticators. Absent: the host tells nothing. */
  readonly facts?: RequestFacts | undefined;
  /** The connection that this request shares with others, as with HTTP/2. */
  readonly connection?: object | undefined;
  /** Whether the response may have `trailers`, as with HTTP/2. Default false. */
  readonly takesTrailers?: boolean;
}

/** The reader of a body in pieces. */
export interface ByteReader {
  /** Called with each piece. */
  chunk(bytes: Uint8Array): void;
  /** Called when the body is complete. */
  end(): void;
  /** Called when the client is gone before the body was complete. */
  gone(): void;
}

/** Controls how fast a body in pieces is received. */
export interface ByteFlow {
  /** Stops the pieces: the sender has to wait. */
  pause(): void;
  /** Lets pieces come. None comes before the first call. */
  resume(): void;
  /** Called when no more pieces are wanted. Absent: the host ends the request when it has been answered. */
  close?(): void;
}

/** Where a streamed body goes. */
export interface Sink {
  /** Takes a chunk. `false`: the client reads too slowly, so wait for `ready()` before the next one. */
  write(chunk: string | Uint8Array): boolean;
  /** Resolves when there is room again, or when the client is gone. */
  ready(): Promise<void>;
  /** Whether the client is gone. Writes then do nothing. */
  readonly closed: boolean;
  /** Calls `run` once when the client is gone, or at once where it is gone already. */
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
   * The body; absent: none. For a writer the host sends the headers first. It calls the writer even where the client is
   * already gone, so that the writer can release its source. To a HEAD request a host sends the headers alone.
   */
  readonly body?: string | Uint8Array | BodyWriter;
  /** Headers after the body, by their lower-case names. Called when the body is written. Only where the request `takesTrailers`. */
  readonly trailers?: () => Readonly<Record<string, string>>;
}

/** Answers requests. Unknown routes get a 404 whose body is an error of the protocol. */
export type UniversalHandler = (request: UniversalRequest) => Promise<UniversalResponse> | UniversalResponse;

/**
 * What a host knows of the sender of a request beside what the request itself says. Authenticators read it. A host looks each
 * fact up when it is asked for, so the facts that nobody reads cost nothing.
 */
export interface RequestFacts {
  /** IP address of the client. Behind a proxy that the host does not trust by name it is that of the proxy. */
  readonly remoteAddress?: string | undefined;
  /** Whether the client's connection is encrypted: with this server, or with a proxy that the host trusts. */
  readonly secure?: boolean | undefined;
  /** The certificate that the client has shown, where the server asked for one (mutual TLS). */
  readonly certificate?: PeerCertificate | undefined;
  /** The user that the host's framework has found, such as `request.user` of Express and Fastify. Its shape is the framework's. */
  readonly user?: unknown;
  /** The caller, as the option `principal` of a mount has found it. `hostUser()` of `@parley/a2a/auth` lets it in. */
  readonly principal?: HostPrincipal | Promise<HostPrincipal>;
}

/** The caller as the host's framework knows it. What is falsy says that there is none: `request.user && { subject: request.user.id }`. */
export type HostPrincipal = Principal | false | null | undefined | "" | 0;

/** A client's certificate of TLS (RFC 5280). */
export interface PeerCertificate {
  /** Whether the host has checked it against its authorities. Where this is false, it proves its key and no name. */
  readonly authorized: boolean;
  /** The certificate itself, in DER. Absent where a proxy told the rest and not the certificate. */
  readonly der?: Uint8Array;
  /** SHA-256 of the DER, as lower-case hexadecimal digits. */
  readonly fingerprint: string;
  /** Its subject, by the short names of attributes: `{ CN: "agent-7", O: "Example" }`. */
  readonly subject: Readonly<Record<string, string | readonly string[]>>;
  /** Its alternative names, with their kinds: `DNS:agent.example.com`, `URI:spiffe://example.com/agent`. */
  readonly names: readonly string[];
  /** When it expires, in milliseconds since the Unix epoch. Absent: the host does not tell. */
  readonly expires?: number;
  /** Fingerprints of the authorities that have signed it, the nearest one first. Absent: the host does not tell. */
  readonly authorities?: readonly string[];
}
