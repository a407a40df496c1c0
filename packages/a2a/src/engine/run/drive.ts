import type { A2AError } from "../../model/index.ts";
import type { AgentOutput, AgentYield } from "../../protocol/index.ts";
import type { ContextView } from "../conversations.ts";
import type { Pace } from "./pace.ts";

/**
 * Steps of a turn that are not paced. A short answer so goes down in one commit however busy the server is: of a task with
 * one artifact, one in five took two, and a read of the store for its answer.
 */
const freeSteps = 8;

/** What takes the events of a turn. Its promises are there only where there is something to wait for: every chunk comes through here. */
export interface TurnSink {
  /** Nothing that the agent says counts any more. */
  readonly stopped: boolean;
  /** The turn has asked its question: nothing more of it is stored. */
  readonly silenced: boolean;
  /** What the agent's last `yield` throws, where the store failed (D3). */
  readonly storeError: A2AError | undefined;
  accept(yielded: AgentYield, context: ContextView): Promise<unknown> | undefined;
  /** While too much waits for the store. */
  room(): Promise<void> | undefined;
}

/** Takes everything that an agent says in one turn. Resolves to whether the agent came to its end; rejects with what it threw. */
export async function drive(output: AgentOutput, sink: TurnSink, context: ContextView, pace: Pace): Promise<boolean> {
  if (!isGenerator(output)) {
    const event = await output;
    if (event !== undefined && !sink.stopped) await sink.accept(event, context);
    return true;
  }
  try {
    for (let steps = 1; ; steps += 1) {
      const step = await output.next();
      if (sink.stopped) break;
      const accepting = step.value === undefined ? undefined : sink.accept(step.value, context);
      if (accepting !== undefined) await accepting;
      if (step.done === true) return true;
      if (sink.silenced) break;
      const room = sink.room();
      if (room !== undefined) await room;
      const rest = steps > freeSteps ? pace.rest() : undefined;
      if (rest !== undefined) await rest;
      if (sink.stopped) break;
    }
  } catch (error) {
    // Its own error has ended the agent already; one of ours has not, and it may have something to clean up.
    void output.return().catch(() => {});
    throw error;
  }
  // The task or the turn is over, and the agent is not.
  if (sink.storeError === undefined) await output.return();
  else await output.throw(sink.storeError);
  return false;
}

function isGenerator(output: AgentOutput): output is Extract<AgentOutput, AsyncGenerator<unknown, unknown, void>> {
  return typeof output === "object" && output !== null && Symbol.asyncIterator in output;
}
