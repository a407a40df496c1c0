import { BoundedMap, memoryOf } from "@parley/a2a/internal/base/bounded-map";
import type { Clock } from "@parley/a2a/internal/base/index";
import type { Rate, RateAnswer, RateLimiter } from "./port.ts";

/**
 * Memory for callers, in bytes: for about 60,000 of them at a time. When it is full, those that came first are forgotten, and begin
 * with all of their requests again.
 */
const memory = 16 << 20;

/** A rate limiter in memory, which answers at once. */
export interface MemoryRateLimiter extends RateLimiter {
  take(key: string, cost: number): RateAnswer;
}

const enough: RateAnswer = { ok: true, retryAfter: 0 };

/**
 * A rate limiter in the memory of this process. It keeps one number for each caller (the generic cell rate algorithm), on the
 * monotonic clock, so that a change of the wall time gives nothing back.
 */
export function memoryRateLimiter({ requests, per }: Rate, clock: Clock, bytes: number = memory): MemoryRateLimiter {
  /** The time at which a caller has all of its requests again. */
  const full = new BoundedMap<number>({ bytes, bytesOf: (key) => memoryOf(key) });
  const interval = per / requests;
  return {
    take(key, cost) {
      const now = clock.elapsed();
      const next = Math.max(full.get(key) ?? now, now) + cost * interval;
      // Less than a microsecond is an error of rounding.
      const wait = next - now - per;
      if (wait > 0.001) return { ok: false, retryAfter: wait };
      full.set(key, next);
      return enough;
    },
  };
}
