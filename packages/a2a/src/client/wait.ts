import type { Clock } from "../base/index.ts";
import { A2AError, stateKinds, type Task, type TaskState } from "../model/index.ts";
import { refusesFinished } from "./resilient.ts";
import { pause } from "./retry.ts";
import type { EventStream } from "./stream.ts";

/** What waiting for a task needs; bound to one task. */
export interface Waiting {
  readonly clock: Clock;
  readonly signal: AbortSignal | undefined;
  readonly until: (task: Task) => boolean;
  /** `undefined`: the agent does not stream. */
  readonly subscribe: (() => EventStream) | undefined;
  get(): Promise<Task>;
}

const minPoll = 500;
const maxPoll = 10_000;

/** Whether a task wants nothing more to happen by itself: it is over, or it wants its caller. */
export function isStopped(state: TaskState): boolean {
  return stateKinds[state] !== "active";
}

/** The task as soon as `until` holds of it: by its stream where there is one, else by asking again and again. */
export async function waitForTask(waiting: Waiting): Promise<Task> {
  const { until } = waiting;
  if (waiting.subscribe !== undefined) {
    try {
      for await (const event of waiting.subscribe()) {
        if (event.task !== undefined && until(event.task)) return event.task;
        if (event.statusUpdate !== undefined) {
          const task = await waiting.get();
          if (until(task)) return task;
        }
      }
    } catch (thrown) {
      // Some agents cannot stream what their card says, and some forget tasks of before their last restart.
      if (!refusesFinished(thrown)) throw thrown;
    }
  }
  return poll(waiting);
}

async function poll(waiting: Waiting): Promise<Task> {
  for (let delay = minPoll; ; delay = Math.min(maxPoll, delay * 1.5)) {
    const task = await waiting.get();
    if (waiting.until(task)) return task;
    const { state } = task.status;
    if (stateKinds[state] === "terminal") {
      throw new A2AError("UnsupportedOperation", `Task ${task.id} ended in ${state} before what was waited for`);
    }
    await pause(waiting.clock, delay, waiting.signal);
  }
}
