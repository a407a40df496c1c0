import type { Bytes } from "../base/index.ts";

/**
 * Outgoing requests. A request to an untrusted URL, such as a webhook's, a card's or a file's, goes through a `GuardedFetch`. A host that
 * can pin addresses passes a `Dialer` to it.
 */

/** An address that a host name resolved to. */
export interface ResolvedAddress {
  /** The IP address. */
  readonly address: string;
  /** Its version: IPv4 or IPv6. */
  readonly family: 4 | 6;
}

/**
 * Opens connections only to checked addresses, so that a name cannot resolve to another address between the check and the
 * request. Created by `nodeDialer()` of `@parley/node`. Runtimes without a dialer (Workers, browsers) can only check the host
 * names and IP addresses in URLs.
 */
export interface Dialer {
  /** The addresses of a host name. Rejects if the name has no addresses. */
  resolve(hostname: string): Promise<readonly ResolvedAddress[]>;
  /** Sends one request to one of `addresses`. It never follows a redirect. */
  fetch(url: URL, addresses: readonly ResolvedAddress[], init: DialInit): Promise<Response>;
}

/** A request to send. */
export interface DialInit {
  /** HTTP method. Default `GET`. */
  readonly method?: string;
  /** Headers. Must not describe the connection, as `Host` does. */
  readonly headers?: Readonly<Record<string, string>>;
  /** The body. */
  readonly body?: string | Bytes;
  /** Ends the request when it is aborted. */
  readonly signal?: AbortSignal;
}

/** Which addresses may be called, and the limits of a call. */
export interface NetPolicy {
  /** Protocols, as `URL.protocol` spells them. Default `["https:", "http:"]`. */
  readonly protocols?: readonly string[];
  /** Ports. Default: 80, 443 and all from 1024, because other protocols use lower ports. */
  readonly ports?: readonly number[];
  /** Whether loopback, private and link-local addresses may be called, for tests and closed networks. Default false. */
  readonly allowPrivate?: boolean;
  /**
   * Allows calls to loopback addresses and `localhost`. Safe for a server that only this machine can reach: its callers
   * could call them too. Default false.
   */
  readonly allowLoopback?: boolean;
  /** Host names or addresses, with or without a port (`host:8080`), that may be called, even if they resolve to private addresses. Default: none. */
  readonly allow?: readonly string[];
  /** Maximum size of a response in bytes. Default 10 MiB. */
  readonly maxBytes?: number;
  /** Maximum duration of a call, including its body, in milliseconds. Default 10 s. */
  readonly timeout?: number;
}

/**
 * Fetches a URL under a policy. Returns the same response as `fetch`, with a limited body. Does not follow redirects. It can also be the
 * `fetch` of a client, for agents with an untrusted URL.
 *
 * @throws A2AError `InvalidParams` for a forbidden address or header, `ConnectionFailed`, `Timeout`, `Aborted`, and `InvalidResponse` if
 * the response is too large. Reading the body may also throw the last four.
 */
export type GuardedFetch = (url: string, init?: DialInit) => Promise<Response>;
