/**
 * Counts what a caller uses, such as requests. `memoryRateLimiter()` is one. A store that several processes share can be another.
 */
export interface RateLimiter {
  /**
   * Takes `cost` from what is left for `key`. Nothing is taken where it is not enough.
   *
   * @param key - Who is limited, and by what: `principal ["acme","ada"]`, `address 192.0.2.1`.
   * @returns Whether it was enough, and if not, after how many milliseconds it will be.
   */
  take(key: string, cost: number): RateAnswer | Promise<RateAnswer>;
}

/** What a rate limiter answers. */
export interface RateAnswer {
  /** Whether there was enough left. */
  readonly ok: boolean;
  /** After how many milliseconds there is enough. 0 where `ok`. */
  readonly retryAfter: number;
}
