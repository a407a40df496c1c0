import { setTimeout as pause } from "node:timers/promises";

/** Milliseconds of a turn of the event loop. */
const turn = 20;

/**
 * The work of an agent that a runner in this process must find working. Counts turns of the event loop, which the runner needs, too: on a
 * busy machine, both take longer. Ends with the signal.
 */
export async function work(milliseconds: number, signal: AbortSignal): Promise<void> {
  for (let left = milliseconds / turn; left > 0 && !signal.aborted; left -= 1) await pause(turn);
}
