import { BoundedMap, memoryOf } from "@parley/a2a/internal/base/bounded-map";
import type { Clock } from "@parley/a2a/internal/base/index";
import type { Failures } from "./guesses.ts";
import type { Rate, RateAnswer, RateLimiter } from "./port.ts";
import { use, waitFor, type Budget, type Reports } from "./reports.ts";

/* Limits that hold over all processes on one store (docs/decisions/rate-limits.md). */

/** Memory for the callers of a limit, in bytes. */
const memory = 16 << 20;
/** What a budget takes beside its names, in bytes. */
const budgetBytes = 200;

/** Of how many requests of a budget a process may use one before the store knows of it. */
const creditOfRequests = 50;
/** The same for failed attempts. It is larger, because attempts that are under way count too, and most of them are right. */
const creditOfFailures = 10;

const enough: RateAnswer = { ok: true, retryAfter: 0 };

interface BudgetsInit {
  readonly name: string;
  readonly rate: Rate;
  readonly reports: Reports;
  readonly clock: Clock;
  readonly onReport?: (caller: string) => void;
}

/** The budgets of the callers of a limit. What they are at in the store is kept here. A caller that is forgotten gets nothing by it. */
class Budgets {
  readonly #init: BudgetsInit;
  readonly #budgets = new BoundedMap<Budget>({
    bytes: memory,
    bytesOf: (caller, { key }) => budgetBytes + memoryOf(caller, key),
  });

  constructor(init: BudgetsInit) {
    this.#init = init;
  }

  of(caller: string): Budget {
    const { name, rate, onReport } = this.#init;
    const { requests, per } = rate;
    const known = this.#budgets.get(caller);
    const budget = known ?? {
      // Processes with other numbers, as in the middle of an upgrade, count apart.
      key: `${name} ${requests}/${per} ${caller}`,
      requests,
      per,
      full: -Infinity,
      used: 0,
      sent: 0,
      asking: 0,
      waiting: new Set(),
      ...(onReport !== undefined && { onReport: () => onReport(caller) }),
    };
    // One that is used again is kept for longer.
    this.#budgets.set(caller, budget);
    return budget;
  }
}

/**
 * A rate limiter whose callers share their budgets with those of other processes. It answers at once while the store knows all but a
 * fiftieth of what was used here. Otherwise a request waits for the store, and pays before it goes on.
 */
export function sharedRateLimiter(name: string, rate: Rate, reports: Reports, clock: Clock): RateLimiter {
  const budgets = new Budgets({ name, rate, reports, clock });
  const credit = Math.floor(rate.requests / creditOfRequests);
  // A caller that comes once costs no call.
  const reportFrom = Math.min(2, credit);
  return {
    take(caller) {
      const budget = budgets.of(caller);
      const now = clock.elapsed();
      const wait = waitFor(budget, 1, now);
      if (wait > 0) {
        // What was used while the store was away.
        if (budget.used > 0) reports.report(budget, false);
        return { ok: false, retryAfter: wait };
      }
      if (budget.used + budget.sent >= credit && !reports.isAway) return reports.ask(budget);
      use(budget, now);
      if (budget.used >= reportFrom) reports.report(budget, false);
      return enough;
    },
  };
}

/**
 * Counts failed attempts together with other processes. An attempt waits while those of its address that failed, or are being checked,
 * and that the store does not know, are a tenth of the limit.
 */
export function sharedFailures(
  rate: Rate,
  reports: Reports,
  clock: Clock,
  onReport: (address: string) => void,
): Failures {
  const budgets = new Budgets({ name: "failures", rate, reports, clock, onReport });
  const credit = Math.max(1, Math.floor(rate.requests / creditOfFailures));
  return {
    wait: (address, failures) => waitFor(budgets.of(address), failures, clock.elapsed()),
    isOpen(address, attempts) {
      const budget = budgets.of(address);
      const { used, sent } = budget;
      if (reports.isAway || used + sent + attempts <= credit) return true;
      return used > 0 && !reports.report(budget, true);
    },
    add(address) {
      const budget = budgets.of(address);
      use(budget, clock.elapsed());
      reports.report(budget, true);
    },
  };
}
