/* Names of the web that servers do not have. */
declare const document: { readonly hidden: boolean } | undefined;
declare const requestAnimationFrame: ((run: () => void) => unknown) | undefined;
declare const window: unknown;

const due = new Set<() => void>();
let isScheduled = false;

/** Calls `run` in the next frame, once. A hidden page has no frames, so there a timer calls it. */
export function inFrame(run: () => void): void {
  due.add(run);
  if (isScheduled) return;
  isScheduled = true;
  const isHidden = typeof document !== "undefined" && document.hidden;
  if (isHidden || typeof requestAnimationFrame === "undefined") setTimeout(runAll, isHidden ? 200 : 16);
  else requestAnimationFrame(runAll);
}

function runAll(): void {
  isScheduled = false;
  const all = [...due];
  due.clear();
  for (const run of all) run();
}

/** Whether this is a server, where users must not share what is read for one of them. */
export const isServer = (): boolean => typeof window === "undefined";
