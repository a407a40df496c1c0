import { TaskView, type Client, type MessageInit, type Message, type Task } from "@parley/a2a";
import { isInterrupted, isTerminal } from "@parley/a2a/model";
import type { Clock } from "@parley/a2a/protocol";
import { idOf } from "./questions.ts";

/* Sends a message, and follows its task up to a time limit. */

/** The outcome of a message. `timedOut` means that the time limit was reached first. Without a `task`, the agent has then not answered at all. */
export interface Reached {
  readonly task?: Task | undefined;
  readonly message?: Message | undefined;
  readonly timedOut?: boolean;
}

/** How long and how to follow a task. */
export interface Following {
  readonly clock: Clock;
  readonly maxWaitMs: number;
  /** The caller's request. */
  readonly signal: AbortSignal;
  /** Called with each state of the task. */
  see(task: Task): void;
  /** The answered question. A task that still shows this question has not continued yet. */
  readonly answered?: string | undefined;
  /** Returns as soon as the task exists. Default: returns once the task waits or has ended. */
  readonly untilExists?: boolean;
}

/** Sends a message. Throws A2AError, or the abort reason of `signal`. */
export async function sendAndFollow(client: Client, message: MessageInit, following: Following): Promise<Reached> {
  const view = new TaskView();
  return limited(following, view, async (signal) => {
    const options = { signal, timeout: false } as const;
    if (client.card.capabilities.streaming === true) {
      for await (const event of client.sendStreamingMessage({ message }, options)) {
        view.apply(event);
        if (see(view, following)) return;
      }
      const { task } = view;
      // Some agents end a stream early.
      if (task !== undefined && !isReached(task, following)) await wait(client, task.id, view, following, signal);
      return;
    }
    const configuration = { returnImmediately: true };
    const answer = await client.sendMessage({ message, configuration }, options);
    view.apply(answer);
    if (answer.task !== undefined && !see(view, following)) await wait(client, answer.task.id, view, following, signal);
  });
}

/** Waits for an existing task. */
export async function followTask(client: Client, taskId: string, following: Following): Promise<Reached> {
  const view = new TaskView();
  return limited(following, view, async (signal) => {
    view.apply({ task: await client.getTask(taskId, { signal }) });
    if (!see(view, following)) await wait(client, taskId, view, following, signal);
  });
}

async function wait(
  client: Client,
  taskId: string,
  view: TaskView,
  following: Following,
  signal: AbortSignal,
): Promise<void> {
  const until = (task: Task): boolean => {
    view.apply({ task });
    return see(view, following);
  };
  await client.waitFor(taskId, { signal, until });
}

async function limited(
  { clock, maxWaitMs, signal }: Following,
  view: TaskView,
  run: (signal: AbortSignal) => Promise<void>,
): Promise<Reached> {
  const limit = new AbortController();
  const stop = clock.after(maxWaitMs, () => limit.abort());
  try {
    await run(AbortSignal.any([signal, limit.signal]));
    return { task: view.task, message: view.message };
  } catch (error) {
    if (signal.aborted || !limit.signal.aborted) throw error;
    return { task: view.task, timedOut: true };
  } finally {
    stop();
  }
}

/** Reports a state of the task. Returns whether to stop following. */
function see(view: TaskView, following: Following): boolean {
  const { task } = view;
  if (task === undefined) return view.message !== undefined;
  following.see(task);
  return following.untilExists === true || isReached(task, following);
}

function isReached(task: Task, { answered }: Following): boolean {
  const { state } = task.status;
  return isTerminal(state) || (isInterrupted(state) && idOf(task) !== answered);
}
