/** Limits the usage of callers, such as requests. It may use a store that several processes share. */
export interface RateLimiter {
  /**
   * Takes `cost` from the budget of `key`, or nothing if the rest is not enough.
   *
   * @param key - The caller and the kind of limit: `principal ["acme","ada"]`, `address 192.0.2.1`.
   * @returns Whether it was enough, and if not, in how many milliseconds it will be.
   */
  take(key: string, cost: number): RateAnswer | Promise<RateAnswer>;
}

/** The answer of a rate limiter. */
export interface RateAnswer {
  /** Whether the budget was enough. */
  readonly ok: boolean;
  /** How long until the budget is enough, in milliseconds. 0 if `ok`. */
  readonly retryAfter: number;
}

/**
 * A number of requests per time. All of them may arrive at once. The budget then refills evenly: with `{ requests: 600, per: 60_000 }`, by one
 * every 100 ms.
 */
export interface Rate {
  /** Number of requests. At least 1. */
  readonly requests: number;
  /** Period in milliseconds. At least 1. */
  readonly per: number;
}

/** Rate limits of callers. Requests beyond a limit fail as `TooManyRequests`, with the time to wait. */
export interface RateLimits {
  /**
   * Requests of one principal. They are counted after authentication, so a caller cannot use up another caller's requests. Without an
   * authenticator, callers are identified by address. Absent: no limit.
   */
  readonly principal?: Rate | RateLimiter;
  /**
   * Requests from one address, before authentication. An IPv6 address counts by its first 64 bits, because a host has all of them. Absent:
   * no limit.
   */
  readonly address?: Rate | RateLimiter;
  /**
   * Requests from one address with wrong or no credentials, to prevent guessing. Beyond the limit, no request from that address is authenticated
   * for a while, even with correct credentials. `false`: no limit. Default: no limit; with `serve()` 100 a minute if other machines reach it.
   */
  readonly failures?: Rate | false;
  /**
   * Whether all processes on one store count together, if the store can do that, as PostgreSQL can. A caller then has one budget, not one
   * per process. `false`: each process counts separately. Default true.
   */
  readonly shared?: boolean;
}
