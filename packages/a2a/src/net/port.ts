/**
 * Calling out (D14). Everything that asks for an address which a stranger chose, a webhook, a card, a file, goes through
 * `GuardedFetch`; a host that can pin addresses gives it a `Dialer`.
 */

/** One address that a name resolved to. */
export interface ResolvedAddress {
  readonly address: string;
  readonly family: 4 | 6;
}

/**
 * How a host opens a connection to exactly the addresses that were checked, so that a name cannot point elsewhere
 * between the check and the call. Runtimes without one (Workers, browsers) check names and literals only.
 */
export interface Dialer {
  resolve(hostname: string): Promise<readonly ResolvedAddress[]>;
  /** Makes one request to one of `addresses`, never following a redirect. */
  fetch(url: URL, addresses: readonly ResolvedAddress[], init: DialInit): Promise<Response>;
}

export interface DialInit {
  readonly method?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: string;
  readonly signal?: AbortSignal;
}

export interface NetPolicy {
  /** Default `["https:", "http:"]`. */
  readonly protocols?: readonly string[];
  /** Default: 80, 443 and all from 1024 up, since what listens below speaks other protocols. */
  readonly ports?: readonly number[];
  /** Lets loopback, private and link-local addresses pass: for tests and closed networks. Default false. */
  readonly allowPrivate?: boolean;
  /** Host names or addresses (with port, where one is given) that pass whatever they resolve to. */
  readonly allow?: readonly string[];
  /** Largest answer in bytes. Default 10 MiB. */
  readonly maxBytes?: number;
  /** Whole call, in milliseconds. Default 10 s. */
  readonly timeout?: number;
}

/** Fetches under a policy. Throws `InvalidParams` naming why an address is refused; the answer's body is bounded. */
export type GuardedFetch = (url: string, init?: DialInit) => Promise<Response>;
