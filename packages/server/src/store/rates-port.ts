/**
 * Budgets that the processes which use a store share, such as the requests of a caller. A budget has so many, which come back evenly:
 * of 600 in a minute one every 100 ms. Time is that of the store. A process asks rarely, and answers its callers by itself
 * meanwhile (docs/decisions/rate-limits.md).
 */
export interface StoreRates {
  /**
   * Counts what was used of budgets, and takes more of them. One answer for each, in the same order. A budget that nobody has used is
   * whole. It need not survive a crash of the store: then it is whole again.
   *
   * What was used counts also where it was not left. Such a debt is paid back by what comes back, and is never larger than the budget,
   * so that nobody waits for longer than twice `per`.
   *
   * @param uses - At most 1,000, of different budgets.
   */
  take(uses: readonly RateUse[]): Promise<readonly RateTaken[]>;
}

/** What a process has used of a budget, and what it wants. */
export interface RateUse {
  /** Names the budget: any text. */
  readonly key: string;
  /** The whole budget. At least 1. */
  readonly requests: number;
  /** In how many milliseconds the whole budget comes back. At least 1. */
  readonly per: number;
  /** What was used without being asked for. A whole number. */
  readonly used: number;
  /** What is asked for. A whole number. As much of it is taken as is left after `used`. */
  readonly wanted: number;
}

/** What a process got of a budget. */
export interface RateTaken {
  /** How much of `wanted` it was. */
  readonly taken: number;
  /** In how many milliseconds the whole budget is back. 0: it is. At most twice `per`. */
  readonly back: number;
}
