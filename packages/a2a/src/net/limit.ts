import type { Clock } from "../base/index.ts";
import { A2AError } from "../model/index.ts";

/* The end of an outgoing call: its timeout, and its caller. */

/**
 * Rejects when the signal is aborted, also for work that cannot be canceled, such as name resolution. `late` gets a result
 * that comes after that.
 */
export function orAborted<T>(work: Promise<T>, signal: AbortSignal | undefined, late?: (value: T) => void): Promise<T> {
  return new Promise((resolve, reject) => {
    const abort = (): void => reject(signal?.reason as Error);
    if (signal?.aborted === true) abort();
    signal?.addEventListener("abort", abort, { once: true });
    work.then((value) => {
      if (signal?.aborted === true) late?.(value);
      resolve(value);
    }, reject);
  });
}

/** A timeout and the signal of the caller, as one signal. */
export interface Limit {
  readonly signal: AbortSignal;
  /** The `A2AError` for what went wrong. */
  explain(error: unknown): A2AError;
  /** Stops the timer: the call is over. */
  end(): void;
}

export function startLimit(timeout: number, caller: AbortSignal | undefined, clock: Clock): Limit {
  const controller = new AbortController();
  const { signal } = controller;
  const stop = clock.after(timeout, () => controller.abort(new A2AError("Timeout", `No answer within ${timeout} ms`)));
  const abort = (): void => controller.abort(new A2AError("Aborted", undefined, { cause: caller?.reason }));
  if (caller?.aborted === true) abort();
  caller?.addEventListener("abort", abort, { once: true });
  return {
    signal,
    explain(error) {
      if (signal.aborted && signal.reason instanceof A2AError) return signal.reason;
      return error instanceof A2AError ? error : new A2AError("ConnectionFailed", undefined, { cause: error });
    },
    end() {
      stop();
      caller?.removeEventListener("abort", abort);
    },
  };
}
