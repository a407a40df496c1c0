import { signal, type Signal } from "@preact/signals";
import type { Client, Part, Task, WatchedTask } from "@parley/a2a";
import { systemClock } from "@parley/a2a/internal/base/index";
// The `watchTask()` function, because the client of `connectJsonRpc()` has no such method.
import { watchTask as watch } from "@parley/a2a/internal/client/watch";
import type { AgentEntry } from "../src/api.ts";
import { answered } from "./decisions.ts";
import { clientOf } from "./talk.ts";
import { activity } from "./wire.ts";

/** States in which a task waits for the user. */
export const waiting: readonly Task["status"]["state"][] = ["TASK_STATE_INPUT_REQUIRED", "TASK_STATE_AUTH_REQUIRED"];

/** A task and its agent. */
export interface ListedTask {
  readonly agent: AgentEntry;
  readonly task: Task;
}

/** The tasks of some agents, newest first. Polls while it is visible. */
export class TaskList {
  readonly tasks: Signal<readonly ListedTask[] | undefined> = signal(undefined);
  readonly problem: Signal<string> = signal("");
  readonly #agents: readonly AgentEntry[];
  readonly #states: readonly (Task["status"]["state"] | undefined)[];
  readonly #limit: number;

  /** @param states - Only tasks in these states. Empty: all states. */
  constructor(agents: readonly AgentEntry[], states: readonly Task["status"]["state"][], limit: number = 50) {
    this.#agents = agents;
    this.#states = states.length === 0 ? [undefined] : states;
    this.#limit = limit;
  }

  /** Polls now, shortly after calls to the agents, and every 10 s. Returns a function that stops polling. */
  follow(): () => void {
    const stop = new AbortController();
    let timer: ReturnType<typeof setTimeout> | undefined;
    const read = (): void => {
      timer = undefined;
      if (!document.hidden) void this.#read(stop.signal);
    };
    const soon = (): void => {
      timer ??= setTimeout(read, 300);
    };
    read();
    const leave = activity.subscribe(soon);
    const each = setInterval(soon, 10_000);
    return () => {
      stop.abort();
      leave();
      clearTimeout(timer);
      clearInterval(each);
    };
  }

  async #read(signal: AbortSignal): Promise<void> {
    try {
      const lists = await Promise.all(this.#agents.map((agent) => this.#of(agent, signal)));
      if (signal.aborted) return;
      const timeOf = ({ task }: ListedTask): string => task.status.timestamp ?? "";
      this.tasks.value = lists.flat().sort((a, b) => (timeOf(a) < timeOf(b) ? 1 : -1));
      this.problem.value = "";
    } catch (thrown) {
      if (!signal.aborted) this.problem.value = thrown instanceof Error ? thrown.message : String(thrown);
    }
  }

  async #of(agent: AgentEntry, signal: AbortSignal): Promise<readonly ListedTask[]> {
    const client = await clientOf(agent);
    const pages = await Promise.all(
      this.#states.map((status) =>
        client.listTasks({ pageSize: this.#limit, ...(status !== undefined && { status }) }, { signal }),
      ),
    );
    return pages.flatMap(({ tasks }) => tasks.map((task) => ({ agent, task })));
  }
}

/** Watches a task. */
export async function watchTask(agent: AgentEntry, id: string): Promise<{ client: Client; watched: WatchedTask }> {
  const client = await clientOf(agent);
  return { client, watched: watch(client, id, {}, { clock: systemClock }) };
}

/** Answers the question of a task, without waiting for the result. */
export async function answerTask(agent: AgentEntry, task: Task, parts: readonly Part[]): Promise<void> {
  const client = await clientOf(agent);
  const { id: taskId, contextId } = task;
  const message = { parts, taskId, ...(contextId !== undefined && { contextId }) };
  await client.sendMessage({ message, configuration: { returnImmediately: true } });
  answered(agent, task, parts);
}
