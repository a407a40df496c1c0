import type { Clock } from "../base/index.ts";
import { A2AError, isTerminal, type Task } from "../model/index.ts";
import type { CallOptions, Client } from "./client.ts";
import { refusesFinished } from "./resilient.ts";
import { pause } from "./retry.ts";

/** First and longest delay between two polls, in milliseconds. */
const minPoll = 500;
const maxPoll = 10_000;

/**
 * The task as soon as `until` returns true for it. It follows the stream of the task where the agent streams, and else
 * polls. `options` apply to the whole wait.
 */
export async function waitForTask(
  client: Pick<Client, "card" | "getTask" | "subscribeToTask">,
  clock: Clock,
  id: string,
  until: (task: Task) => boolean,
  options: CallOptions,
): Promise<Task> {
  if (client.card.capabilities.streaming === true) {
    try {
      for await (const event of client.subscribeToTask(id, options)) {
        const task = event.statusUpdate === undefined ? event.task : await client.getTask(id, options);
        if (task !== undefined && until(task)) return task;
      }
    } catch (thrown) {
      // Some agents declare streaming and do not have it, and some cannot stream tasks of before their last restart.
      if (!refusesFinished(thrown)) throw thrown;
    }
  }
  for (let delay = minPoll; ; delay = Math.min(maxPoll, delay * 1.5)) {
    const task = await client.getTask(id, options);
    if (until(task)) return task;
    const { state } = task.status;
    if (isTerminal(state)) {
      throw new A2AError("UnsupportedOperation", `Task ${id} ended in ${state} before the awaited state`);
    }
    await pause(clock, delay, options.signal);
  }
}
