import { BoundedMap, memoryOf } from "@parley/a2a/internal/base/bounded-map";
import { defer, deferred, type Clock, type Logger } from "@parley/a2a/internal/base/index";
import type { RateTaken, StoreRates } from "../store/port.ts";
import type { Failures } from "./guesses.ts";
import { enough, withoutRounding } from "./memory.ts";
import type { Rate, RateAnswer, RateLimiter } from "./port.ts";

/* Limits that hold over all processes on one store (docs/decisions/rate-limits.md). */

/** How long a request waits, from its arrival, and a call may take, in milliseconds. Then this process decides alone. */
const patience = 1_000;
/** How long the store is left alone after a failure, in milliseconds. */
const awayFor = 1_000;
/** How long usage that no call awaits is collected before it is reported, in milliseconds. */
const gatherMs = 100;
const maxInCall = 500;
/** Budgets that wait for a call. The use of others is kept until they are used again. */
const maxQueued = 20_000;
/** Time between two lines of the log, in milliseconds. */
const quiet = 60_000;

/** A budget of one caller, as this process sees it. */
interface Budget {
  /** Its name in the store. */
  readonly key: string;
  readonly requests: number;
  readonly per: number;
  /** When all of it is back, on the monotonic clock: as the store knew it last, and what was used here since. */
  full: number;
  /** Used here, and not reported. */
  used: number;
  /** Used here, and on its way to the store. */
  sent: number;
  /** Requests that have asked the store, and still wait. */
  asking: number;
  waiting: Set<Asked>;
  /** Called when the store has answered, or does not. */
  readonly onReport: (() => void) | undefined;
}

/** Server dependencies of reports. */
interface ReportsHost {
  readonly rates: StoreRates;
  readonly clock: Clock;
  readonly logger: Logger;
  /** Nothing is reported any more. */
  isClosed(): boolean;
}

/** A request that waits for the store. */
interface Asked {
  /** It has its answer. */
  isOver: boolean;
  answer(answer: RateAnswer): void;
}

interface Sent {
  readonly budget: Budget;
  readonly used: number;
  readonly asked: readonly Asked[];
}

/** After how many milliseconds so much more of a budget may be used, as far as this process knows. 0: now. */
function waitFor({ requests, per, full, asking, waiting }: Budget, more: number, now: number): number {
  return withoutRounding(Math.max(full, now) + (asking + waiting.size + more) * (per / requests) - now - per);
}

/** Counts what is used without asking the store. */
function use(budget: Budget, now: number): void {
  budget.full = Math.max(budget.full, now) + budget.per / budget.requests;
  budget.used += 1;
}

/**
 * Tells the store what was used of budgets, and asks it for more: one call at a time, for all budgets together. While the store does not
 * answer, this process counts alone, and reports that later.
 */
export class Reports {
  readonly #host: ReportsHost;
  /** Budgets that requests wait for. They go first. */
  readonly #urgent = new Set<Budget>();
  readonly #queue = new Set<Budget>();
  /** A call is under way, or about to be. */
  #isBusy = false;
  /** After a failure: until when the store is left alone, on the monotonic clock. */
  #awayUntil: number | undefined;
  /** When the next failure is logged. */
  #quietUntil = -Infinity;
  #clearTimer: (() => void) | undefined;

  constructor(host: ReportsHost) {
    this.#host = host;
  }

  /** Whether this process counts alone. */
  get isAway(): boolean {
    return this.#awayUntil !== undefined || this.#host.isClosed();
  }

  /** Reports a budget: soon, or at once if it is `urgent`. `false`: it does not, because there are too many. */
  report(budget: Budget, urgent: boolean): boolean {
    if (!this.#add(budget, urgent)) return false;
    if (this.#host.isClosed() || this.#host.clock.elapsed() < (this.#awayUntil ?? -Infinity)) return true;
    if (urgent || this.#awayUntil !== undefined) this.#sendNow();
    else this.#sendSoon();
    return true;
  }

  /** Takes one more of a budget that this process may not use alone any more. */
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

  /** Lets a request through that has waited for long enough, in the queue or for its answer. */
  #tooLong(budget: Budget, asked: Asked): void {
    if (!budget.waiting.delete(asked)) budget.asking -= 1;
    this.#letThrough(budget, [asked]);
  }

  /** `false`: there are too many. */
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
    // Requests that came together ask together.
    defer(() => void this.#sendAll());
  }

  async #sendAll(): Promise<void> {
    do {
      await this.#send(this.#next());
    } while (this.#awayUntil === undefined && (this.#urgent.size > 0 || this.#queue.size >= maxInCall));
    this.#isBusy = false;
    if (this.#queue.size > 0 && this.#awayUntil === undefined && !this.#host.isClosed()) this.#sendSoon();
  }

  /** The budgets of the next call. A caller that was forgotten in between may be in the queue twice. */
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
    // What was taken for those that did not wait so long: they were let through, and counted.
    budget.used -= Math.max(0, taken - waiting.length);
    budget.full = begun + back + budget.used * (budget.per / budget.requests);
    for (const [at, each] of waiting.entries()) each.answer(at < taken ? enough : this.#refusal(budget));
    if (budget.used > 0) this.#add(budget, false);
  }

  /** Lets those through that still wait. */
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
    logger.error("Shared rate limits unavailable; this process counts alone", { cause });
  }
}

/** Memory for the callers of a limit, in bytes. */
const memory = 16 << 20;
/** Approximate memory of a budget in addition to its names, in bytes. */
const budgetBytes = 200;

/** Of how many requests of a budget a process may use one before the store knows of it. */
const creditOfRequests = 50;
/** The same for failed attempts: fewer, because attempts under way count too, and most of them are right. */
const creditOfFailures = 10;

/** The budgets of the callers of a limit. A caller that is forgotten gains nothing: the store knows what it used. */
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
    // Processes with other numbers, as during an upgrade, count apart.
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
    // One that is used again is kept for longer.
    budgets.set(caller, budget);
    return budget;
  };
}

/**
 * A rate limiter whose callers share their budgets with other processes. It answers at once while the store knows all but a fiftieth of
 * what was used here. Otherwise a request waits for the store.
 */
export function sharedRateLimiter(name: string, rate: Rate, reports: Reports, clock: Clock): RateLimiter {
  const budgetOf = budgetsOf(name, rate);
  const credit = Math.floor(rate.requests / creditOfRequests);
  // A caller that comes once costs no call.
  const reportFrom = Math.min(2, credit);
  return {
    take(caller) {
      const budget = budgetOf(caller);
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
 * Counts failed attempts together with other processes. An attempt waits while those of its address that failed, or are being checked, and
 * that the store does not know, are a tenth of the limit.
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
