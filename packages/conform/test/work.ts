import { setTimeout as pause } from "node:timers/promises";

/** Milliseconds of a turn of the event loop. */
const turn = 20;

/**
 * The work of an agent that a runner of this process has to find at work. It is counted in turns of the event loop, in which the runner
 * gets on too: on a busy machine, or in a process with much to do, both take longer. It ends with the signal.
 */
export async function work(milliseconds: number, signal: AbortSignal): Promise<void> {
  for (let left = milliseconds / turn; left > 0 && !signal.aborted; left -= 1) await pause(turn);
}
