import { BoundedMap, memoryOf } from "@parley/a2a/internal/base/bounded-map";
import type { Clock } from "@parley/a2a/internal/base/index";
import type { Failures } from "./guesses.ts";
import type { Rate, RateAnswer, RateLimiter } from "./port.ts";

/* Limits in the memory of this process. */

/** Memory for callers, in bytes, which is enough for about 60,000. When it is full, the oldest are dropped, and have their whole budget again. */
const memory = 16 << 20;

export const enough: RateAnswer = { ok: true, retryAfter: 0 };

/** A difference of less than a microsecond is a rounding error. */
export function withoutRounding(wait: number): number {
  return wait > 0.001 ? wait : 0;
}

/**
 * The generic cell rate algorithm. It stores one number per caller: the time when its whole budget is available again. Uses the monotonic clock,
 * so a change of the wall clock restores no budget.
 */
class Budgets {
  readonly #fullAt: BoundedMap<number>;
  readonly #rate: Rate;
  readonly #clock: Clock;

  constructor(rate: Rate, clock: Clock, bytes: number) {
    this.#rate = rate;
    this.#clock = clock;
    this.#fullAt = new BoundedMap<number>({ bytes, bytesOf: (key) => memoryOf(key) });
  }

  /** How long until this much may be used, in milliseconds. 0: now. */
  wait(key: string, cost: number): number {
    const now = this.#clock.elapsed();
    return withoutRounding(this.#after(key, cost, now) - now - this.#rate.per);
  }

  use(key: string, cost: number): void {
    this.#fullAt.set(key, this.#after(key, cost, this.#clock.elapsed()));
  }

  #after(key: string, cost: number, now: number): number {
    const { requests, per } = this.#rate;
    return Math.max(this.#fullAt.get(key) ?? now, now) + cost * (per / requests);
  }
}

/** A synchronous rate limiter in memory. */
export interface MemoryRateLimiter extends RateLimiter {
  take(key: string, cost: number): RateAnswer;
}

/** Limits the requests that reach this process. */
export function memoryRateLimiter(rate: Rate, clock: Clock, bytes: number = memory): MemoryRateLimiter {
  const budgets = new Budgets(rate, clock, bytes);
  return {
    take(key, cost) {
      const wait = budgets.wait(key, cost);
      if (wait > 0) return { ok: false, retryAfter: wait };
      budgets.use(key, cost);
      return enough;
    },
  };
}

/** Counts the failures that reach this process. */
export function memoryFailures(rate: Rate, clock: Clock): Failures {
  const budgets = new Budgets(rate, clock, memory);
  return {
    wait: (address, failures) => Math.max(0, Math.ceil(budgets.wait(address, failures) - 0.001)),
    isOpen: () => true,
    add: (address) => budgets.use(address, 1),
  };
}
