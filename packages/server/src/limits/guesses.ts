import { deferred } from "@parley/a2a/internal/base/index";
import { A2AError, hasCode } from "@parley/a2a/internal/model/index";
import { hasWrongCredentials, type UniversalRequest } from "@parley/a2a/internal/protocol/index";
import type { Rate } from "./port.ts";

/** Maximum requests of one address that wait for earlier requests of that address. */
const maxWaiting = 1_000;

/** Counts failed attempts of addresses. */
export interface Failures {
  /** How long until an address may fail this many more times, in milliseconds. 0: now. */
  wait(address: string, failures: number): number;
  /** Whether an address may have this many concurrent attempts. If this depends on other attempts, `onReport` is called when they have ended. */
  isOpen(address: string, attempts: number): boolean;
  add(address: string): void;
}

/** The attempts of an address that are being checked. */
interface Running {
  count: number;
  /** Resolve functions of waiting attempts, for when one of the running ones has ended. */
  readonly waiting: (() => void)[];
}

/**
 * Limits failed attempts to authenticate, for each address. An attempt counts as a failure until it has succeeded, so concurrent guesses
 * cannot exceed the limit. If only unfinished attempts fill the limit, the next attempt waits for them, so a busy address with correct
 * credentials is never rejected.
 */
export class Guesses {
  readonly #failures: Failures;
  /** When an attempt that must not wait may be retried, in milliseconds from now. */
  readonly #interval: number;
  readonly #running = new Map<string, Running>();

  /** `failures`: is passed a function to call when an address may have more concurrent attempts than before. */
  constructor({ requests, per }: Rate, failures: (onReport: (address: string) => void) => Failures) {
    this.#failures = failures((address) => this.#wakeAll(address));
    this.#interval = per / requests;
  }

  /**
   * Runs an attempt. Rethrows its errors, and counts `Unauthenticated`. An attempt with several credentials counts even if only some of them are
   * wrong.
   *
   * @param request - The request that is authenticated.
   * @throws A2AError `TooManyRequests` if the address has failed too often.
   */
  attempt<T>(address: string, request: UniversalRequest, run: () => T | Promise<T>): T | Promise<T> {
    const wait = this.#failures.wait(address, 1);
    if (wait > 0) throw tooManyFailures(wait);
    if (!this.#mayBegin(address)) return this.#later(address, request, run);
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
    // The next waiting attempt gets the same answer.
    this.#wake(address);
    throw tooManyFailures(wait);
  }

  /** Whether one more concurrent attempt is allowed. */
  #mayBegin(address: string): boolean {
    const attempts = 1 + (this.#running.get(address)?.count ?? 0);
    return this.#failures.wait(address, attempts) === 0 && this.#failures.isOpen(address, attempts);
  }

  #runningOf(address: string): Running {
    let running = this.#running.get(address);
    if (running === undefined) this.#running.set(address, (running = { count: 0, waiting: [] }));
    return running;
  }

  #wake(address: string): void {
    const running = this.#running.get(address);
    running?.waiting.shift()?.();
    if (running?.count === 0 && running.waiting.length === 0) this.#running.delete(address);
  }

  #wakeAll(address: string): void {
    const running = this.#running.get(address);
    for (const turn of running?.waiting.splice(0) ?? []) turn();
    if (running?.count === 0) this.#running.delete(address);
  }

  /** Counts an attempt that was a guess. */
  #ended(address: string, request: UniversalRequest, thrown?: unknown): void {
    if (hasCode(thrown, "Unauthenticated") || hasWrongCredentials(request)) this.#failures.add(address);
  }
}

function tooManyFailures(wait: number): A2AError {
  return new A2AError("TooManyRequests", "Too many requests from this address had wrong or no credentials", {
    retryAfter: Math.ceil(wait / 1000),
  });
}
