import type { Clock } from "../../base/index.ts";
import { A2AError } from "../../model/index.ts";

/** Abort signals and timeouts. */

/** The reason of an aborted signal as an `A2AError`: `Timeout` if the caller's own timeout fired, else `Aborted`. */
export function abortError(signal: AbortSignal): A2AError {
  const reason: unknown = signal.reason;
  if (reason instanceof A2AError) return reason;
  const timeout = reason instanceof Error && reason.name === "TimeoutError";
  return timeout
    ? new A2AError("Timeout", "The call took longer than its signal allows", { cause: reason })
    : new A2AError("Aborted", "The call was aborted", { cause: reason });
}

/** Calls `run` once when the signal is aborted, or now if it is already aborted. The returned function removes the listener. */
export function onAbort(signal: AbortSignal | undefined, run: (error: A2AError) => void): () => void {
  const fire = (): void => run(abortError(signal as AbortSignal));
  if (signal?.aborted) fire();
  signal?.addEventListener("abort", fire, { once: true });
  return () => signal?.removeEventListener("abort", fire);
}

/** Rejects with the reason of the signal when it is aborted. Never resolves. */
export function aborted(signal: AbortSignal | undefined): Promise<never> {
  return new Promise((_, reject) => onAbort(signal, reject));
}

/** Waits. Throws the reason of the signal if the signal is aborted first. */
export function pause(clock: Clock, ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = clock.after(ms, () => {
      forget();
      resolve();
    });
    const forget = onAbort(signal, (error) => {
      stop();
      reject(error);
    });
  });
}

/** A controller that is aborted together with the signal of a caller, until `release` is called. */
export interface Following {
  readonly own: AbortController;
  release(): void;
}

export function follow(signal: AbortSignal | undefined): Following {
  const own = new AbortController();
  return { own, release: onAbort(signal, (error) => own.abort(error)) };
}

/** Combines a caller's signal and a timeout in one signal. Call `release` when the work is over. */
export interface Bounded {
  readonly signal: AbortSignal | undefined;
  release(): void;
}

/** `what` returns the subject of the error message, such as "The call". */
export function bounded(
  clock: Clock,
  signal: AbortSignal | undefined,
  timeout: number | false,
  what: () => string,
): Bounded {
  const { own, release } = follow(signal);
  const stop =
    timeout !== false &&
    clock.after(timeout, () => own.abort(new A2AError("Timeout", `${what()} took longer than ${timeout} ms`)));
  return {
    signal: own.signal,
    release() {
      if (stop) stop();
      release();
    },
  };
}
