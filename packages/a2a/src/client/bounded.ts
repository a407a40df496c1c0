import type { Clock } from "../base/index.ts";
import { A2AError } from "../model/index.ts";
import { onAbort } from "../transport/http/index.ts";

/** What follows a caller's signal until `release`. */
export interface Following {
  readonly own: AbortController;
  release(): void;
}

export function follow(signal: AbortSignal | undefined): Following {
  const own = new AbortController();
  return { own, release: onAbort(signal, (error) => own.abort(error)) };
}

/** A caller's signal and a limit in time, as one signal; `release` once the work is over. */
export interface Bounded {
  readonly signal: AbortSignal | undefined;
  release(): void;
}

/** `what` took longer, when it did: "The call". */
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
