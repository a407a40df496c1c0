import type { Bytes, Clock } from "../../base/index.ts";
import type { AgentCard, AgentInterface } from "../../model/index.ts";
import type { AgentService, OperationName } from "../../protocol/index.ts";

/** The interface of client bindings, and their dependencies. */

/** A binding of a client, which opens interfaces that a card lists under the binding's name. */
export interface ClientBinding {
  /** The name on cards, `protocolBinding` (A2A 1.0 §4.4.6). */
  readonly name: string;
  /** Versions that the binding speaks, as `Major.Minor`, the preferred version first. */
  readonly versions: readonly string[];
  /** Returns why the URL of an interface cannot be used, such as "is not …". Default: accepts only absolute HTTP URLs. */
  unusable?(url: string): string | undefined;
  /** The origin that receives the requests, if the URL of the interface is not an HTTP URL. */
  origin?(url: string, card: AgentCard): string | undefined;
  /** Makes the service of an interface, which connects on the first call. `version` is one of `versions`; `card` lists the interface. */
  open(target: AgentInterface, version: string, host: ClientHost, card: AgentCard): AgentService;
}

/** The dependencies of a client's bindings. */
export interface ClientHost {
  /** Sends the requests. */
  readonly fetch: FetchLike;
  /** Headers of every request. */
  readonly headers: HeadersSource;
  /** Measures the timeouts. */
  readonly clock: Clock;
  /** The limits. */
  readonly limits: ClientLimits;
  /** Adds credentials to requests. If absent, requests have no credentials. */
  readonly credentials?: RequestCredentialing | undefined;
}

/** A request that may get credentials. */
export interface CredentialedRequest {
  /** HTTP method. */
  readonly method: string;
  /** URL of the request. */
  readonly url: string;
  /** Headers by their lower-case names. */
  readonly headers: Readonly<Record<string, string>>;
}

/** The headers of an answer, from `fetch` or another source. */
export interface AnswerHeaders {
  /** A header by its lower-case name. */
  get(name: string): string | null | undefined;
}

/** Adds credentials to the requests of a client. `sendRequest()` does this; a binding without `sendRequest()` must call these methods itself. */
export interface RequestCredentialing {
  /**
   * Adds credentials to the headers of a request, or to the query for some API keys. Called for each attempt. Returns requests to other
   * origins unchanged.
   */
  add<Request extends CredentialedRequest>(request: Request, signal: AbortSignal | undefined): Promise<Request>;
  /** Reads data for the next credentials, the `DPoP-Nonce` header (RFC 9449 §8), from an answer. */
  answered(headers: AnswerHeaders): void;
}

/** Limits of a client. */
export interface ClientLimits {
  /** Maximum wait for the headers of a response, in milliseconds. Does not apply to a send that waits for its task. */
  readonly connectTimeout: number | false;
  /** Maximum pause within a response, in milliseconds. */
  readonly idleTimeout: number | false;
  /** Maximum size of a response, in bytes. */
  readonly maxResponseBytes: number;
  /** Maximum size of a stream's event, in bytes. */
  readonly maxEventBytes: number;
}

/** Sends a request, as the `fetch` of the runtime does. */
export type FetchLike = (url: string, init: FetchInit) => Promise<Response>;

/** The part of `RequestInit` that a client uses, so that a guarded fetch or a test double can replace `fetch`. */
export interface FetchInit {
  /** HTTP method. */
  readonly method: string;
  /** Headers by their lower-case names. */
  readonly headers: Readonly<Record<string, string>>;
  /** The body. Only gRPC-Web sends bytes. */
  readonly body?: string | Bytes;
  /** Ends the request when it is aborted. */
  readonly signal: AbortSignal;
  /** `follow` is only for a card without credentials, because a redirect would send credentials and messages to another URL. */
  readonly redirect: "manual" | "follow";
}

/** Headers of every request, or a function that is called before each request, for example to renew a token. */
export type HeadersSource =
  | Readonly<Record<string, string>>
  | ((request: HeadersRequest) => Readonly<Record<string, string>> | Promise<Readonly<Record<string, string>>>);

/** The request that the headers are for. */
export interface HeadersRequest {
  /** URL of the request. */
  readonly url: string;
  /** The operation that is called, or `AgentCard` for the card. */
  readonly operation: OperationName | "AgentCard";
}
