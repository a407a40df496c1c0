/** Counts what a caller uses, such as requests. A store that several processes share can be one. */
export interface RateLimiter {
  /**
   * Takes `cost` from what is left for `key`, or nothing if that is not enough.
   *
   * @param key - Who is limited, and by what: `principal ["acme","ada"]`, `address 192.0.2.1`.
   * @returns Whether it was enough, and if not, after how many milliseconds it will be.
   */
  take(key: string, cost: number): RateAnswer | Promise<RateAnswer>;
}

/** The answer of a rate limiter. */
export interface RateAnswer {
  /** Whether there was enough left. */
  readonly ok: boolean;
  /** After how many milliseconds there is enough. 0 if `ok`. */
  readonly retryAfter: number;
}

/**
 * So many requests in so much time. All of them may come at once. Then they come back evenly: of `{ requests: 600, per: 60_000 }` one every
 * 100 ms.
 */
export interface Rate {
  /** How many. At least 1. */
  readonly requests: number;
  /** In how many milliseconds. At least 1. */
  readonly per: number;
}

/** Limits of the requests of a caller. What exceeds one is rejected as `TooManyRequests`, with the time to wait. */
export interface RateLimits {
  /**
   * Requests of one principal. It counts after authentication, so a caller cannot use up the requests of another. Without an
   * authenticator, callers are identified by address. Absent: no limit.
   */
  readonly principal?: Rate | RateLimiter;
  /**
   * Requests from one address, before authentication. An IPv6 address counts by its first 64 bits, because a host has all of them. Absent:
   * no limit.
   */
  readonly address?: Rate | RateLimiter;
  /**
   * Requests from one address with wrong or no credentials, against guessing. Beyond it no request of that address is authenticated for a
   * while, whatever its credentials are. `false`: no limit. Default: no limit, and with `serve()` 100 a minute if other machines reach it.
   */
  readonly failures?: Rate | false;
  /**
   * Whether all processes on one store count together, if the store can do that, as PostgreSQL can: a caller then has its requests once, and
   * not once per process. `false`: each process counts alone. Default true.
   */
  readonly shared?: boolean;
}
