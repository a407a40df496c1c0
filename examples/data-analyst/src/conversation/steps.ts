import type { AgentEvent } from "@parley/node";
import { checkpointOf, type AnalystTurn, type TableRef } from "./memory.ts";

/** A step: some events that are stored together. The same message and table always make the same steps. */
export type Steps = AsyncGenerator<readonly AgentEvent[], void, void>;

/**
 * Makes steps resumable. A checkpoint is the number of steps that are stored. A resumed run reads the table again, which is
 * cheap, leaves out the steps that are stored, and continues with the next one.
 */
export async function* resumable(
  turn: AnalystTurn,
  steps: Steps,
  table: () => TableRef | undefined,
): AsyncGenerator<readonly AgentEvent[], void, void> {
  const stored = checkpointOf(turn).steps;
  let step = 0;
  for await (const events of steps) {
    step += 1;
    // The work ends, so no checkpoint follows: the table is missing or has changed.
    const ends = events.some(endsTurn);
    if (step <= stored && !ends) continue;
    const reference = table();
    const value = { steps: step, ...(reference === undefined ? {} : { table: reference }) };
    yield ends ? events : [...events, turn.saveCheckpoint(value)];
  }
}

function endsTurn(event: AgentEvent): boolean {
  return event.kind === "reply" || (event.kind === "status" && event.state !== "TASK_STATE_WORKING");
}
