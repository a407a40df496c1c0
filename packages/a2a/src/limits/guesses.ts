import { BoundedMap, memoryOf } from "../base/bounded-map.ts";
import { deferred, type Clock } from "../base/index.ts";
import { A2AError, hasCode } from "../model/index.ts";
import { hasWrongCredentials, type UniversalRequest } from "../protocol/index.ts";
import type { Rate } from "./port.ts";

/** Memory for addresses that failed, in bytes. */
const memory = 16 << 20;

/** Most requests of one address that wait for others of that address. */
const mostWaiting = 1_000;

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
  readonly #interval: number;
  readonly #per: number;
  readonly #clock: Clock;
  /** The time at which all failures of an address are forgotten. */
  readonly #forgotten = new BoundedMap<number>({ bytes: memory, bytesOf: (key) => memoryOf(key) });
  readonly #running = new Map<string, Running>();

  constructor({ requests, per }: Rate, clock: Clock) {
    this.#interval = per / requests;
    this.#per = per;
    this.#clock = clock;
  }

  /**
   * Runs an attempt of an address. What it throws is passed on, and counts where it is `Unauthenticated`. An attempt with several
   * credentials counts also where only some of them are wrong.
   *
   * @param request - The request that is authenticated.
   * @throws A2AError `TooManyRequests` where the address has failed too often.
   */
  attempt<T>(address: string, request: UniversalRequest, run: () => T | Promise<T>): T | Promise<T> {
    const wait = this.#wait(address, 1);
    if (wait > 0) throw tooManyFailures(wait);
    if (this.#wait(address, 1 + (this.#running.get(address)?.count ?? 0)) > 0)
      return this.#later(address, request, run);
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
    let running = this.#running.get(address);
    if (running === undefined) this.#running.set(address, (running = { count: 0, waiting: [] }));
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
    for (let running = this.#running.get(address); running !== undefined; running = this.#running.get(address)) {
      if (running.count === 0 || this.#wait(address, 1 + running.count) === 0) break;
      if (running.waiting.length >= mostWaiting) throw tooManyFailures(this.#interval);
      const turn = deferred<void>();
      running.waiting.push(turn.resolve);
      await turn.promise;
    }
    const wait = this.#wait(address, 1);
    if (wait === 0) return this.#watch(address, request, (async () => run())());
    // The next one that waits gets the same answer.
    this.#wake(address);
    throw tooManyFailures(wait);
  }

  /** Wakes the next one that waits. */
  #wake(address: string): void {
    const running = this.#running.get(address);
    running?.waiting.shift()?.();
    if (running?.count === 0 && running.waiting.length === 0) this.#running.delete(address);
  }

  /** After how many milliseconds an address may fail so many times. */
  #wait(address: string, failures: number): number {
    const now = this.#clock.elapsed();
    const next = Math.max(this.#forgotten.get(address) ?? now, now) + failures * this.#interval;
    // Less than a microsecond is an error of rounding.
    return Math.max(0, Math.ceil(next - now - this.#per - 0.001));
  }

  /** Counts an attempt that was a guess. */
  #ended(address: string, request: UniversalRequest, thrown?: unknown): void {
    if (!hasCode(thrown, "Unauthenticated") && !hasWrongCredentials(request)) return;
    const now = this.#clock.elapsed();
    this.#forgotten.set(address, Math.max(this.#forgotten.get(address) ?? now, now) + this.#interval);
  }
}

function tooManyFailures(wait: number): A2AError {
  return new A2AError("TooManyRequests", "Too many requests with wrong or no credentials came from this address", {
    retryAfter: Math.ceil(wait / 1000),
  });
}
