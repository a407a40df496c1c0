import { BoundedMap, memoryOf } from "@parley/a2a/internal/base/bounded-map";
import { defer, deferred, type Clock, type Logger } from "@parley/a2a/internal/base/index";
import type { RateTaken, StoreRates } from "../store/port.ts";
import type { Failures } from "./guesses.ts";
import { enough, withoutRounding } from "./memory.ts";
import type { Rate, RateAnswer, RateLimiter } from "./port.ts";

/* Limits across all processes with the same store (docs/decisions/rate-limits.md). */

/** Time limit for a request's wait, from its arrival, and for a call, in milliseconds. After this time, this process decides without the store. */
const patience = 1_000;
/** Time without calls to the store after a failure, in milliseconds. */
const awayFor = 1_000;
/** How long usage is collected before it is reported, in milliseconds, unless a request waits for it. */
const gatherMs = 100;
const maxInCall = 500;
/** Maximum budgets that wait for a call. The usage of further callers is reported on their next request. */
const maxQueued = 20_000;
/** Time between two lines of the log, in milliseconds. */
const quiet = 60_000;

/** The state of one caller's budget in this process. */
interface Budget {
  /** Its name in the store. */
  readonly key: string;
  readonly requests: number;
  readonly per: number;
  /** When the whole budget is available again, on the monotonic clock. It combines the last state of the store and the usage here since then. */
  full: number;
  /** Unreported usage of this process. */
  used: number;
  /** Usage of this process that is being reported to the store. */
  sent: number;
  /** Requests that wait for the store. */
  asking: number;
  waiting: Set<Asked>;
  /** Called when the store has answered, or the call has failed. */
  readonly onReport: (() => void) | undefined;
}

/** Server dependencies of reports. */
interface ReportsHost {
  readonly rates: StoreRates;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Whether reporting has ended. */
  isClosed(): boolean;
}

/** A request that waits for the store. */
interface Asked {
  /** Whether it has its answer. */
  isOver: boolean;
  answer(answer: RateAnswer): void;
}

interface Sent {
  readonly budget: Budget;
  readonly used: number;
  readonly asked: readonly Asked[];
}

/** How long until this much more of a budget may be used, in milliseconds, as far as this process knows. 0: now. */
function waitFor({ requests, per, full, asking, waiting }: Budget, more: number, now: number): number {
  return withoutRounding(Math.max(full, now) + (asking + waiting.size + more) * (per / requests) - now - per);
}

/** Counts usage without asking the store. */
function use(budget: Budget, now: number): void {
  budget.full = Math.max(budget.full, now) + budget.per / budget.requests;
  budget.used += 1;
}

/**
 * Reports the usage of budgets to the store, and requests more: one call at a time, for all budgets together. While the store
 * does not answer, this process counts without it, and reports the usage later.
 */
export class Reports {
  readonly #host: ReportsHost;
  /** Budgets that requests wait for. These budgets take precedence. */
  readonly #urgent = new Set<Budget>();
  readonly #queue = new Set<Budget>();
  /** Whether a call is in progress or scheduled. */
  #isBusy = false;
  /** After a failure: when to call the store again, on the monotonic clock. */
  #awayUntil: number | undefined;
  /** When the next failure is logged. */
  #quietUntil = -Infinity;
  #clearTimer: (() => void) | undefined;

  constructor(host: ReportsHost) {
    this.#host = host;
  }

  /** Whether this process counts without the store. */
  get isAway(): boolean {
    return this.#awayUntil !== undefined || this.#host.isClosed();
  }

  /** Reports a budget: soon, or immediately if it is `urgent`. `false`: not reported, because too many budgets wait. */
  report(budget: Budget, urgent: boolean): boolean {
    if (!this.#add(budget, urgent)) return false;
    if (this.#host.isClosed() || this.#host.clock.elapsed() < (this.#awayUntil ?? -Infinity)) return true;
    if (urgent || this.#awayUntil !== undefined) this.#sendNow();
    else this.#sendSoon();
    return true;
  }

  /** Takes one more of a budget for which this process must ask the store. */
  ask(budget: Budget): RateAnswer | Promise<RateAnswer> {
    if (this.isAway || !this.report(budget, true)) {
      use(budget, this.#host.clock.elapsed());
      this.report(budget, false);
      return enough;
    }
    const { promise, resolve } = deferred<RateAnswer>();
    const cancel = this.#host.clock.after(patience, () => this.#tooLong(budget, asked));
    const asked: Asked = {
      isOver: false,
      answer(answer) {
        cancel();
        asked.isOver = true;
        resolve(answer);
      },
    };
    budget.waiting.add(asked);
    return promise;
  }

  /** Admits a request that has waited long enough, in the queue or for its answer. */
  #tooLong(budget: Budget, asked: Asked): void {
    if (!budget.waiting.delete(asked)) budget.asking -= 1;
    this.#letThrough(budget, [asked]);
  }

  /** `false`: too many budgets wait. */
  #add(budget: Budget, urgent: boolean): boolean {
    if (this.#urgent.has(budget) || (!urgent && this.#queue.has(budget))) return true;
    const to = urgent ? this.#urgent : this.#queue;
    if (to.size >= maxQueued) return false;
    if (urgent) this.#queue.delete(budget);
    to.add(budget);
    return true;
  }

  #sendSoon(): void {
    if (this.#isBusy) return;
    this.#clearTimer ??= this.#host.clock.after(gatherMs, () => this.#sendNow());
  }

  #sendNow(): void {
    if (this.#isBusy) return;
    this.#isBusy = true;
    this.#clearTimer?.();
    this.#clearTimer = undefined;
    // Requests that arrive together share a call.
    defer(() => void this.#sendAll());
  }

  async #sendAll(): Promise<void> {
    do {
      await this.#send(this.#next());
    } while (this.#awayUntil === undefined && (this.#urgent.size > 0 || this.#queue.size >= maxInCall));
    this.#isBusy = false;
    if (this.#queue.size > 0 && this.#awayUntil === undefined && !this.#host.isClosed()) this.#sendSoon();
  }

  /** The budgets of the next call. A caller that was dropped meanwhile may be in the queue twice. */
  #next(): readonly Sent[] {
    const next = new Map<string, Sent>();
    for (const from of [this.#urgent, this.#queue]) {
      for (const budget of from) {
        if (next.size === maxInCall) break;
        if (next.has(budget.key)) continue;
        from.delete(budget);
        const { used, waiting } = budget;
        next.set(budget.key, { budget, used, asked: [...waiting] });
        budget.sent = used;
        budget.asking = waiting.size;
        budget.used = 0;
        budget.waiting = new Set();
      }
    }
    return [...next.values()];
  }

  /** Never rejects. */
  async #send(sent: readonly Sent[]): Promise<void> {
    if (sent.length === 0) return;
    const { clock, rates } = this.#host;
    const begun = clock.elapsed();
    let isLate = false;
    const giveUp = (cause: unknown): void => {
      for (const { budget, asked } of sent) {
        budget.asking = 0;
        this.#letThrough(budget, asked);
      }
      this.#lost(cause);
    };
    const cancel = clock.after(patience, () => {
      isLate = true;
      giveUp(new Error(`The store did not answer within ${patience} ms`));
    });
    try {
      const uses = sent.map(({ budget: { key, requests, per }, used, asked }) => {
        return { key, requests, per, used, wanted: asked.length };
      });
      const answers = await rates.take(uses);
      cancel();
      this.#awayUntil = undefined;
      for (const [at, each] of sent.entries()) this.#note(each, answers[at] ?? { taken: 0, back: 0 }, begun);
      for (const { budget } of sent) budget.onReport?.();
    } catch (cause) {
      cancel();
      if (isLate) this.#lost(cause);
      else giveUp(cause);
      for (const { budget, used } of sent) {
        budget.sent = 0;
        budget.used += used;
        this.#add(budget, false);
      }
    }
  }

  #note({ budget, asked }: Sent, { taken, back }: RateTaken, begun: number): void {
    budget.sent = budget.asking = 0;
    const waiting = asked.filter(({ isOver }) => !isOver);
    // The store has also counted requests that were admitted meanwhile, which this process has already counted.
    budget.used -= Math.max(0, taken - waiting.length);
    budget.full = begun + back + budget.used * (budget.per / budget.requests);
    for (const [at, each] of waiting.entries()) each.answer(at < taken ? enough : this.#refusal(budget));
    if (budget.used > 0) this.#add(budget, false);
  }

  /** Admits all waiting requests. */
  #letThrough(budget: Budget, asked: readonly Asked[]): void {
    for (const each of asked) {
      if (each.isOver) continue;
      use(budget, this.#host.clock.elapsed());
      each.answer(enough);
    }
    budget.onReport?.();
  }

  #refusal(budget: Budget): RateAnswer {
    return { ok: false, retryAfter: Math.max(1, waitFor(budget, 1, this.#host.clock.elapsed())) };
  }

  #lost(cause: unknown): void {
    const { clock, logger } = this.#host;
    const now = clock.elapsed();
    this.#awayUntil = now + awayFor;
    for (const from of [this.#urgent, this.#queue]) {
      for (const budget of from) {
        const waiting = [...budget.waiting];
        budget.waiting.clear();
        this.#letThrough(budget, waiting);
      }
    }
    if (now < this.#quietUntil || this.#host.isClosed()) return;
    this.#quietUntil = now + quiet;
    logger.error("Shared rate limits unavailable; counting in this process only", { cause });
  }
}

/** Memory for the callers of a limit, in bytes. */
const memory = 16 << 20;
/** Approximate memory of a budget in addition to its names, in bytes. */
const budgetBytes = 200;

/** A process may use one in this many requests of a budget before it reports to the store. */
const creditOfRequests = 50;
/** Like `creditOfRequests`, for failed attempts. More may be unreported, because running attempts count, too, and most succeed. */
const creditOfFailures = 10;

/** The budgets of the callers of a limit. A dropped caller gains nothing, because the store knows its usage. */
function budgetsOf(
  name: string,
  { requests, per }: Rate,
  onReport?: (caller: string) => void,
): (caller: string) => Budget {
  const budgets = new BoundedMap<Budget>({
    bytes: memory,
    bytesOf: (caller, { key }) => budgetBytes + memoryOf(caller, key),
  });
  const newBudget = (caller: string): Budget => ({
    // Processes with another limit, as during an upgrade, count separately.
    key: `${name} ${requests}/${per} ${caller}`,
    requests,
    per,
    full: -Infinity,
    used: 0,
    sent: 0,
    asking: 0,
    waiting: new Set(),
    onReport: onReport && (() => onReport(caller)),
  });
  return (caller) => {
    const budget = budgets.get(caller) ?? newBudget(caller);
    // A used entry moves to the end, so it is kept longer.
    budgets.set(caller, budget);
    return budget;
  };
}

/**
 * A rate limiter whose callers share their budgets with other processes. It answers synchronously while the unreported usage is below a
 * fiftieth of the budget. Otherwise a request waits for the store.
 */
export function sharedRateLimiter(name: string, rate: Rate, reports: Reports, clock: Clock): RateLimiter {
  const budgetOf = budgetsOf(name, rate);
  const credit = Math.floor(rate.requests / creditOfRequests);
  // A single request of a caller costs no call.
  const reportFrom = Math.min(2, credit);
  return {
    take(caller) {
      const budget = budgetOf(caller);
      const now = clock.elapsed();
      const wait = waitFor(budget, 1, now);
      if (wait > 0) {
        // Usage while the store was unavailable.
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
 * Counts failed attempts together with other processes. An attempt waits while the failed and running attempts of its address that are not
 * reported to the store reach a tenth of the limit.
 */
export function sharedFailures(
  rate: Rate,
  reports: Reports,
  clock: Clock,
  onReport: (address: string) => void,
): Failures {
  const budgetOf = budgetsOf("failures", rate, onReport);
  const credit = Math.max(1, Math.floor(rate.requests / creditOfFailures));
  return {
    wait: (address, failures) => waitFor(budgetOf(address), failures, clock.elapsed()),
    isOpen(address, attempts) {
      const budget = budgetOf(address);
      const { used, sent } = budget;
      if (reports.isAway || used + sent + attempts <= credit) return true;
      return used > 0 && !reports.report(budget, true);
    },
    add(address) {
      const budget = budgetOf(address);
      use(budget, clock.elapsed());
      reports.report(budget, true);
    },
  };
}
