import { deferred } from "./async.ts";

/**
 * Calls functions apart from whoever asks for it: in the async context of the code that made this one. Traces, transactions and whatever
 * else a program keeps in an `AsyncLocalStorage` then do not leak into work that only happens to begin in their callers.
 */
export class Apart {
  #waiting: (() => void)[] = [];
  #asked = deferred<void>();

  constructor() {
    void this.#serve();
  }

  /** Calls the function soon. What it throws is the caller's. */
  call<T>(run: () => T | PromiseLike<T>): Promise<T> {
    const { promise, resolve, reject } = deferred<T>();
    this.#waiting.push(() => {
      try {
        resolve(run());
      } catch (error) {
        reject(error);
      }
    });
    this.#asked.resolve();
    return promise;
  }

  /** What follows an `await` has the context of the function that awaits, and not of the one that resolves. */
  async #serve(): Promise<never> {
    for (;;) {
      await this.#asked.promise;
      this.#asked = deferred();
      for (const run of this.#waiting.splice(0)) run();
    }
  }
}
