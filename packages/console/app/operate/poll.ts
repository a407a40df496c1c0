import { signal } from "@preact/signals";

/** Incremented after each act, so that the page reloads its data. */
export const acted = signal(0);

interface PollInit {
  /** Milliseconds between the end of a round and the next one. */
  readonly everyMs?: number;
  /** Called after each act, before `work`. */
  onAct?(): unknown;
}

/** Calls `work` now, after each act, and periodically while the page is visible. Returns a function that stops polling. */
export function polled(
  work: (isStopped: () => boolean) => Promise<void>,
  { everyMs = 2_000, onAct }: PollInit = {},
): () => void {
  let isStopped = false;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let round = 0;
  const next = async (): Promise<void> => {
    clearTimeout(timer);
    const own = ++round;
    if (!document.hidden) await work(() => isStopped || own !== round);
    if (!isStopped && own === round) timer = setTimeout(() => void next(), everyMs);
  };
  // Also calls the listener immediately.
  const leave = acted.subscribe(() => {
    onAct?.();
    void next();
  });
  return () => {
    isStopped = true;
    leave();
    clearTimeout(timer);
  };
}
