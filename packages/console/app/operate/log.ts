import { signal, type Signal } from "@preact/signals";
import type { LogEntry, ShownTask, TaskList, TaskLog } from "@parley/server/internal/operate/port";
import { agents } from "../server.ts";
import { read, refusedBy } from "./api.ts";

/* The stored logs of a task and of its delegated tasks. */

/** A task and its log, as the server stores them. */
export interface LoggedTask {
  readonly shown: ShownTask;
  readonly entries: readonly LogEntry[];
  /** Delegated tasks on the same server, by delegation number. */
  readonly children: ReadonlyMap<number, LoggedTask>;
  /** When the page read it, in milliseconds since the Unix epoch. */
  readonly at: number;
}

/** Maximum records of a task that the page reads. */
const maxEntries = 200_000;
/** Maximum depth and number of delegated tasks that the page follows. */
const [maxDepth, maxTasks] = [3, 20];

/** Polls a task until it is terminal. */
export class TaskLogFollower {
  readonly loaded: Signal<LoggedTask | undefined> = signal(undefined);
  readonly problem: Signal<string> = signal("");
  readonly #known = new Map<string, { readonly agent: string; readonly entries: LogEntry[] }>();
  /** Delegated tasks that this round has followed so far. */
  #followed = 0;
  readonly #agent: string | undefined;
  readonly #taskId: string;

  /** @param agent - Mount id. If it is absent, or if this agent does not have the task, the log uses any agent that has it. */
  constructor(agent: string | undefined, taskId: string) {
    this.#agent = agent;
    this.#taskId = taskId;
  }

  /** Polls now and every 2 s. Returns a function that stops polling. */
  follow(): () => void {
    let isStopped = false;
    const next = async (): Promise<void> => {
      try {
        this.#followed = 0;
        const found = await this.#read([this.#agent], this.#taskId, 0);
        if (isStopped) return;
        if (found === undefined) this.problem.value = "The server has no log of this task";
        else if (isNew(found, this.loaded.value)) this.loaded.value = found;
        if (found !== undefined) this.problem.value = "";
        if (found?.shown.why.kind === "done") return;
      } catch (thrown) {
        if (!isStopped) this.problem.value = thrown instanceof Error ? thrown.message : String(thrown);
      }
      // After a rejection of the credentials, a retry would fail again.
      if (!isStopped && refusedBy.value === "") timer = setTimeout(() => void next(), 2_000);
    };
    let timer: ReturnType<typeof setTimeout> | undefined;
    void next();
    return () => {
      isStopped = true;
      clearTimeout(timer);
    };
  }

  async #read(wanted: readonly (string | undefined)[], taskId: string, depth: number): Promise<LoggedTask | undefined> {
    const known = this.#known.get(taskId);
    const candidates = known === undefined ? await candidatesOf(taskId, wanted) : [known.agent];
    for (const agent of candidates) {
      const shown = await read<ShownTask>("/v1/task", { agent, taskId });
      if (shown === undefined) continue;
      const entries = known?.entries ?? [];
      this.#known.set(taskId, { agent, entries });
      await readOn(entries, agent, taskId);
      const children = new Map<number, LoggedTask>();
      if (depth < maxDepth) {
        for (const { number, agent: name, taskId: id } of shown.delegations) {
          const found =
            id === undefined || ++this.#followed > maxTasks ? undefined : await this.#read(idsOf(name), id, depth + 1);
          if (found !== undefined) children.set(number, found);
        }
      }
      return { shown, entries: [...entries], children, at: Date.now() };
    }
    return undefined;
  }
}

/** Appends the records after the last entry. */
async function readOn(entries: LogEntry[], agent: string, taskId: string): Promise<void> {
  for (let after = entries.at(-1)?.seq; entries.length < maxEntries;) {
    const page = await read<TaskLog>("/v1/log", { agent, taskId, after, limit: 5_000 });
    for (const entry of page?.entries ?? []) entries.push(entry);
    after = page?.next;
    // Otherwise a server that returns empty pages, each with a next page, would keep the loop running forever.
    if (after === undefined || page?.entries.length === 0) return;
  }
}

/** Ids of the server's agents with a name. */
function idsOf(name: string): readonly string[] {
  return agents.value.filter(({ card }) => card.name === name).map(({ id }) => id);
}

/** Ids of the agents that have the task, with the wanted agents first. */
async function candidatesOf(taskId: string, wanted: readonly (string | undefined)[]): Promise<readonly string[]> {
  const { tasks = [] } = (await read<TaskList>("/v1/tasks", { taskId })) ?? {};
  const ids = tasks.map(({ agent }) => agent);
  const first = ids.filter((id) => wanted.includes(id));
  return [...first, ...ids.filter((id) => !first.includes(id))];
}

/** Whether the chart must be redrawn. Spans of a running task always grow. */
function isNew(found: LoggedTask, before: LoggedTask | undefined): boolean {
  const textOf = ({ shown, children }: LoggedTask): string =>
    JSON.stringify(shown) + [...children.values()].map(textOf).join("");
  return before === undefined || found.shown.why.kind !== "done" || textOf(found) !== textOf(before);
}
