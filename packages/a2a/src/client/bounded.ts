import type { Clock } from "../base/index.ts";
import { A2AError } from "../model/index.ts";
import { onAbort } from "../transport/http/index.ts";

/** A controller that is aborted with the signal of a caller, until `release`. */
export interface Following {
  readonly own: AbortController;
  release(): void;
}

export function follow(signal: AbortSignal | undefined): Following {
  const own = new AbortController();
  return { own, release: onAbort(signal, (error) => own.abort(error)) };
}

/** The signal of a caller and a timeout as one signal. Call `release` when the work is over. */
export interface Bounded {
  readonly signal: AbortSignal | undefined;
  release(): void;
}

/** `what` is the subject of the error message: "The call". */
export function bounded(
  clock: Clock,
  signal: AbortSignal | undefined,
  timeout: number | false,
  what: () => string,
): Bounded {
  if (timeout === false) return { signal, release() {} };
  const { own, release } = follow(signal);
  const stop = clock.after(timeout, () =>
    own.abort(new A2AError("Timeout", `${what()} took longer than ${timeout} ms`)),
  );
  return {
    signal: own.signal,
    release() {
      stop();
      release();
    },
  };
}
