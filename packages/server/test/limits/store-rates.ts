import type { Clock } from "@parley/a2a/internal/base/index";
import type { RateTaken, RateUse, StoreRates } from "../../src/store/index.ts";

/** Budgets in memory. A test can count the calls, delay them, and make them fail. */
export interface TestRates extends StoreRates {
  /** The uses that each call reported. */
  readonly calls: (readonly RateUse[])[];
  /** Awaited by each call. If the promise rejects, the call fails without effect. */
  before: () => Promise<void>;
}

export function testRates(clock: Clock): TestRates {
  const full = new Map<string, number>();
  const use = ({ key, requests, per, used, wanted }: RateUse): RateTaken => {
    const now = clock.elapsed();
    const pace = per / requests;
    const base = Math.max(full.get(key) ?? now, now) + used * pace;
    const taken = Math.max(0, Math.min(wanted, Math.floor((now + per - base) / pace + 0.001)));
    const next = Math.min(base + taken * pace, now + 2 * per);
    full.set(key, next);
    return { taken, back: next - now };
  };
  const rates: TestRates = {
    calls: [],
    before: () => Promise.resolve(),
    async take(uses) {
      rates.calls.push(uses);
      await rates.before();
      return uses.map(use);
    },
  };
  return rates;
}
