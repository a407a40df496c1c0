import { A2AError } from "../../model/index.ts";

/** Why a signal fired, as an error of ours: a caller's abort is `Aborted`, a caller's time limit `Timeout`. */
export function abortError(signal: AbortSignal): A2AError {
  const reason: unknown = signal.reason;
  if (reason instanceof A2AError) return reason;
  const timeout = reason instanceof Error && reason.name === "TimeoutError";
  return timeout
    ? new A2AError("Timeout", "The call took longer than its signal allows", { cause: reason })
    : new A2AError("Aborted", "The call was aborted", { cause: reason });
}

/** Calls `run` once, when the signal fires; at once when it has. The returned function takes that back. */
export function onAbort(signal: AbortSignal | undefined, run: (error: A2AError) => void): () => void {
  const fire = (): void => run(abortError(signal as AbortSignal));
  if (signal?.aborted) fire();
  signal?.addEventListener("abort", fire, { once: true });
  return () => signal?.removeEventListener("abort", fire);
}

/** Never resolves; rejects with why the signal fired. */
export function aborted(signal: AbortSignal | undefined): Promise<never> {
  return new Promise((_, reject) => onAbort(signal, reject));
}
