/**
 * Runs something once the current turn of the event loop is over: what happens in one turn can then be done at once.
 * A runtime without `setImmediate` (Workers) has the timer.
 */
export function defer(run: () => void): void {
  const immediate = (globalThis as { setImmediate?: (run: () => void) => unknown }).setImmediate;
  if (immediate === undefined) setTimeout(run, 0);
  else immediate(run);
}
