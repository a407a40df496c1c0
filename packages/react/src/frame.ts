/* Browser globals that servers do not have. */
declare const document: { readonly hidden: boolean } | undefined;
declare const requestAnimationFrame: ((run: () => void) => unknown) | undefined;
declare const window: unknown;

const due = new Set<() => void>();
let isScheduled = false;

/** Calls `run` once, in the next frame. A hidden page has no frames and uses a timer instead. */
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

/** Whether this is a server, where users must not share each other's data. */
export const isServer = (): boolean => typeof window === "undefined";
