/**
 * Runs something after the current turn of the event loop, so that the work of one turn can be done together. Runtimes
 * without `setImmediate`, such as Workers, use a timer.
 */
export function defer(run: () => void): void {
  const immediate = (globalThis as { setImmediate?: (run: () => void) => unknown }).setImmediate;
  if (immediate === undefined) setTimeout(run, 0);
  else immediate(run);
}
