import { BoundedMap, memoryOf } from "@parley/a2a/internal/base/bounded-map";
import { deferred, type Clock } from "@parley/a2a/internal/base/index";
import { A2AError, hasCode } from "@parley/a2a/internal/model/index";
import { hasWrongCredentials, type UniversalRequest } from "@parley/a2a/internal/protocol/index";
import type { Rate } from "./port.ts";

/** Memory for addresses that failed, in bytes. */
const memory = 16 << 20;

/** Most requests of one address that wait for others of that address. */
const maxWaiting = 1_000;

/** What is known of the failures of addresses. */
export interface Failures {
  /** After how many milliseconds an address may fail so many times. 0: now. */
  wait(address: string, failures: number): number;
  /** Whether so many attempts of an address may be under way. Where others than those that are have to end first, `onReport` says when. */
  isOpen(address: string, attempts: number): boolean;
  /** Counts a failure. */
  add(address: string): void;
}

/** Counts failures in this process. */
export function ownFailures({ requests, per }: Rate, clock: Clock): Failures {
  const interval = per / requests;
  /** The time at which all failures of an address are forgotten. */
  const forgotten = new BoundedMap<number>({ bytes: memory, bytesOf: (key) => memoryOf(key) });
  const after = (address: string, failures: number, now: number): number =>
    Math.max(forgotten.get(address) ?? now, now) + failures * interval;
  return {
    wait(address, failures) {
      const now = clock.elapsed();
      // Less than a microsecond is an error of rounding.
      return Math.max(0, Math.ceil(after(address, failures, now) - now - per - 0.001));
    },
    isOpen: () => true,
    add: (address) => forgotten.set(address, after(address, 1, clock.elapsed())),
  };
}

/** The attempts of an address that are being checked. */
interface Running {
  count: number;
  /** Resolved when one of them has ended. */
  readonly waiting: (() => void)[];
}

/**
 * Limits failed attempts to authenticate, for each address. An attempt that is being checked counts as a failure until it has
 * succeeded, so that a thousand guesses at the same time are no more than one after the other. Where only such attempts fill the
 * limit, the next one waits for them: a busy address whose credentials are right is never refused.
 */
export class Guesses {
  readonly #failures: Failures;
  /** After how many milliseconds one that may not even wait may try again. */
  readonly #interval: number;
  readonly #running = new Map<string, Running>();

  /** `failures`: counts them. It gets a function that it calls where more attempts of an address may be under way than before. */
  constructor({ requests, per }: Rate, failures: (onReport: (address: string) => void) => Failures) {
    this.#failures = failures((address) => this.#wakeAll(address));
    this.#interval = per / requests;
  }

  /**
   * Runs an attempt of an address. What it throws is passed on, and counts where it is `Unauthenticated`. An attempt with several
   * credentials counts also where only some of them are wrong.
   *
   * @param request - The request that is authenticated.
   * @throws A2AError `TooManyRequests` where the address has failed too often.
   */
  attempt<T>(address: string, request: UniversalRequest, run: () => T | Promise<T>): T | Promise<T> {
    const wait = this.#failures.wait(address, 1);
    if (wait > 0) throw tooManyFailures(wait);
    if (!this.#mayBegin(address)) return this.#later(address, request, run);
    return this.#run(address, request, run);
  }

  #run<T>(address: string, request: UniversalRequest, run: () => T | Promise<T>): T | Promise<T> {
    let result: T | Promise<T>;
    try {
      result = run();
    } catch (thrown) {
      this.#ended(address, request, thrown);
      throw thrown;
    }
    if (result instanceof Promise) return this.#watch(address, request, result);
    this.#ended(address, request);
    return result;
  }

  async #watch<T>(address: string, request: UniversalRequest, result: Promise<T>): Promise<T> {
    const running = this.#runningOf(address);
    running.count++;
    try {
      const value = await result;
      this.#ended(address, request);
      return value;
    } catch (thrown) {
      this.#ended(address, request, thrown);
      throw thrown;
    } finally {
      running.count--;
      this.#wake(address);
    }
  }

  async #later<T>(address: string, request: UniversalRequest, run: () => T | Promise<T>): Promise<T> {
    while (!this.#mayBegin(address)) {
      const running = this.#runningOf(address);
      if (running.count === 0 && this.#failures.wait(address, 1) > 0) break;
      if (running.waiting.length >= maxWaiting) throw tooManyFailures(this.#interval);
      const turn = deferred<void>();
      running.waiting.push(turn.resolve);
      await turn.promise;
    }
    const wait = this.#failures.wait(address, 1);
    if (wait === 0) return this.#watch(address, request, (async () => run())());
    // The next one that waits gets the same answer.
    this.#wake(address);
    throw tooManyFailures(wait);
  }

  /** Whether one attempt more may be under way. */
  #mayBegin(address: string): boolean {
    const attempts = 1 + (this.#running.get(address)?.count ?? 0);
    return this.#failures.wait(address, attempts) === 0 && this.#failures.isOpen(address, attempts);
  }

  #runningOf(address: string): Running {
    let running = this.#running.get(address);
    if (running === undefined) this.#running.set(address, (running = { count: 0, waiting: [] }));
    return running;
  }

  /** Wakes the next one that waits. */
  #wake(address: string): void {
    const running = this.#running.get(address);
    running?.waiting.shift()?.();
    if (running?.count === 0 && running.waiting.length === 0) this.#running.delete(address);
  }

  /** Wakes all that wait: failures of theirs are known now. */
  #wakeAll(address: string): void {
    const running = this.#running.get(address);
    for (const turn of running?.waiting.splice(0) ?? []) turn();
    if (running?.count === 0) this.#running.delete(address);
  }

  /** Counts an attempt that was a guess. */
  #ended(address: string, request: UniversalRequest, thrown?: unknown): void {
    if (!hasCode(thrown, "Unauthenticated") && !hasWrongCredentials(request)) return;
    this.#failures.add(address);
  }
}

function tooManyFailures(wait: number): A2AError {
  return new A2AError("TooManyRequests", "Too many requests with wrong or no credentials came from this address", {
    retryAfter: Math.ceil(wait / 1000),
  });
}
