import type { Clock } from "../base/index.ts";
import { A2AError } from "../model/index.ts";
import type { StreamItem } from "../protocol/index.ts";
import { abortError } from "../transport/http/index.ts";

/** What follows a caller's signal until `release`. */
export interface Following {
  readonly own: AbortController;
  release(): void;
}

export function follow(signal: AbortSignal | undefined): Following {
  const own = new AbortController();
  const onAbort = (): void => own.abort(abortError(signal as AbortSignal));
  if (signal?.aborted) onAbort();
  signal?.addEventListener("abort", onAbort, { once: true });
  return { own, release: () => signal?.removeEventListener("abort", onAbort) };
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

/** Never resolves; rejects with what the signal says when it fires. */
export function aborted(signal: AbortSignal | undefined): Promise<never> {
  return new Promise((_, reject) =>
    signal?.addEventListener("abort", () => reject(abortError(signal)), { once: true }),
  );
}

type Batches = AsyncIterable<readonly StreamItem[]>;

/** The same batches; calls `done` when they are over or their reader leaves, and `letGo` when it leaves. */
export function finishing(source: Batches, done: () => void, letGo?: () => unknown): Batches {
  return {
    [Symbol.asyncIterator]() {
      const batches = source[Symbol.asyncIterator]();
      return {
        async next() {
          try {
            const result = await batches.next();
            if (result.done === true) done();
            return result;
          } catch (thrown) {
            done();
            throw thrown;
          }
        },
        async return() {
          done();
          await letGo?.();
          await batches.return?.();
          return { done: true, value: undefined };
        },
      };
    },
  };
}
