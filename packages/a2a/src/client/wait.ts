import type { Clock } from "../base/index.ts";
import { A2AError, isTerminal, type Task } from "../model/index.ts";
import type { CallOptions, Client } from "./client.ts";
import { refusesFinished } from "./resilient.ts";
import { pause } from "./retry.ts";

const minPoll = 500;
const maxPoll = 10_000;

/**
 * The task as soon as `until` holds of it: by its stream where the agent streams, else by asking again and again.
 * `options` bound the whole of it.
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
      // Some agents cannot stream what their card says, and some forget tasks of before their last restart.
      if (!refusesFinished(thrown)) throw thrown;
    }
  }
  for (let delay = minPoll; ; delay = Math.min(maxPoll, delay * 1.5)) {
    const task = await client.getTask(id, options);
    if (until(task)) return task;
    const { state } = task.status;
    if (isTerminal(state)) {
      throw new A2AError("UnsupportedOperation", `Task ${id} ended in ${state} before what was waited for`);
    }
    await pause(clock, delay, options.signal);
  }
}
