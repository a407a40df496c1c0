/**
 * Runs something after the current turn of the event loop, to batch its work. Runtimes without `setImmediate`, such as Workers, use a
 * timer.
 */
export function defer(run: () => void): void {
  const immediate = (globalThis as { setImmediate?: (run: () => void) => unknown }).setImmediate;
  if (immediate === undefined) setTimeout(run, 0);
  else immediate(run);
}

/** Settles a promise. Only the first call counts. */
export interface Resolver<T> {
  readonly resolve: (value: T) => void;
  readonly reject: (error: unknown) => void;
}

/** A promise with its `resolve` and `reject`: `Promise.withResolvers`, which Node 20 lacks. */
export interface Deferred<T> extends Resolver<T | PromiseLike<T>> {
  readonly promise: Promise<T>;
}

export function deferred<T>(): Deferred<T> {
  let resolve!: (value: T | PromiseLike<T>) => void;
  let reject!: (error: unknown) => void;
  const promise = new Promise<T>((yes, no) => {
    resolve = yes;
    reject = no;
  });
  return { promise, resolve, reject };
}

/** Waiters for a repeated event. */
export class Waiters {
  #waiting: (() => void)[] = [];

  /** Resolves at the next `wake`. */
  wait(): Promise<void> {
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  wake(): void {
    const waiting = this.#waiting;
    if (waiting.length === 0) return;
    this.#waiting = [];
    for (const resolve of waiting) resolve();
  }
}

/** A stream of one value. */
export async function* once<T>(value: T): AsyncGenerator<T, void, void> {
  yield value;
}

/**
 * A generator that can be stopped while it waits. For a plain one, `return()` and `throw()` only take effect at its next `yield`. It is a function,
 * not a class that implements `AsyncGenerator`, because the members of that interface depend on the user's `lib`.
 *
 * @param make - Makes the generator. Its signal is aborted when the reader stops.
 */
export function leavable<T, Result>(
  make: (left: AbortSignal) => AsyncGenerator<T, Result, void>,
): AsyncGenerator<T, Result, void> {
  const left = new AbortController();
  const generator = make(left.signal);
  const { return: leave, throw: fail } = generator;
  const leaving: Pick<AsyncGenerator<T, Result, void>, "return" | "throw"> = {
    return(value) {
      left.abort();
      return leave.call(generator, value);
    },
    throw(error) {
      left.abort();
      return fail.call(generator, error);
    },
  };
  return Object.assign(generator, leaving);
}

/**
 * Calls functions in the async context in which this object was created, so that traces and transactions of callers (`AsyncLocalStorage`)
 * do not leak into shared work.
 */
export class Apart {
  #waiting: (() => void)[] = [];
  #asked = deferred<void>();

  constructor() {
    void this.#serve();
  }

  /** Calls the function soon. Errors that it throws reach the caller of this method. */
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

  /** Code after an `await` runs in the context of the function that awaits, not of the code that resolves the promise. */
  async #serve(): Promise<never> {
    for (;;) {
      await this.#asked.promise;
      this.#asked = deferred();
      for (const run of this.#waiting.splice(0)) run();
    }
  }
}

/** The timers of a `Clock`. */
interface Timers {
  after(ms: number, run: () => void): () => void;
}

/** Resolves after `ms` milliseconds. */
export function pause(clock: Timers, ms: number): Promise<void> {
  return new Promise((resolve) => void clock.after(ms, resolve));
}

/** Whether work settles within `ms` milliseconds. */
export async function endsWithin(clock: Timers, ms: number, work: Promise<unknown>): Promise<boolean> {
  const late = deferred<boolean>();
  const clear = clock.after(ms, () => late.resolve(false));
  const ended = work.then(
    () => true,
    () => true,
  );
  const isOver = await Promise.race([ended, late.promise]);
  clear();
  return isOver;
}

/**
 * Rejects when the signal is aborted, even if the work cannot be canceled, such as name resolution. `late` receives a result that
 * arrives after that.
 */
export function untilAborted<T>(
  work: Promise<T>,
  signal: AbortSignal | undefined,
  late?: (value: T) => void,
): Promise<T> {
  if (!signal) return work;
  return new Promise((resolve, reject) => {
    const abort = (): void => reject(signal.reason as Error);
    if (signal.aborted) abort();
    signal.addEventListener("abort", abort);
    work
      .then((value) => {
        if (signal.aborted) late?.(value);
        resolve(value);
      }, reject)
      .finally(() => signal.removeEventListener("abort", abort));
  });
}
