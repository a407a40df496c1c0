import { signal, type Signal } from "@preact/signals";
import type {
  Act,
  Counts,
  OperatedNode,
  OperatedTask,
  PausedAgent,
  TaskList,
} from "@parley/server/internal/operate/port";
import { read } from "./api.ts";
import { polled } from "./poll.ts";
import { ownerWord } from "./words.ts";

/** A filter of the task list. Empty strings match everything. */
export interface Filter {
  /** A substring of the id, owner or agent. Filters only the tasks on the page. */
  readonly text: string;
  readonly states: string;
  readonly agent: string;
  readonly owner: string;
  readonly node: string;
  readonly suspended: boolean;
  readonly order: "newest" | "oldest";
  readonly limit: number;
}

const anything: Filter = {
  text: "",
  states: "",
  agent: "",
  owner: "",
  node: "",
  suspended: false,
  order: "newest",
  limit: 50,
};

/** The current filter. Kept while the page is open. */
export const filter = signal(anything);

/** Whether a task matches the text of a filter. */
export function holds(text: string): (task: OperatedTask) => boolean {
  const wanted = text.toLowerCase();
  return ({ taskId, contextId, owner, agent }) =>
    [taskId, contextId, owner, ownerWord(owner), agent].some((each) => each.toLowerCase().includes(wanted));
}

/** Mount id of an agent that has tasks. */
export async function agentOf(taskId: string): Promise<string | undefined> {
  return (await read<TaskList>("/v1/tasks", { taskId, limit: 1 }))?.tasks[0]?.agent;
}

/** Maximum tasks of a page. */
export const maxTasks = 500;

/** The operators' view: tasks of all owners, agents and nodes. Polls while it is visible. */
export class Operated {
  readonly tasks: Signal<readonly OperatedTask[] | undefined> = signal(undefined);
  /** Whether more tasks match than the page has. */
  readonly more: Signal<boolean> = signal(false);
  readonly counts: Signal<Counts | undefined> = signal(undefined);
  readonly nodes: Signal<readonly OperatedNode[]> = signal([]);
  /** Paused agents: since when, by which operator, and why. */
  readonly paused: Signal<readonly PausedAgent[]> = signal([]);
  /** The newest acts of operators. */
  readonly acts: Signal<readonly Act[]> = signal([]);
  readonly problem: Signal<string> = signal("");

  /** Polls now, after each act, and every 2 s. Returns a function that stops polling. */
  follow(filter: Filter): () => void {
    let round = 0;
    return polled(
      async (isStopped) => {
        try {
          const { states, agent, owner, node, suspended, order, limit } = filter;
          const wanted = Object.fromEntries(
            Object.entries({ states, agent, owner, node }).filter(([, value]) => value !== ""),
          );
          // Counting costs the server more than listing.
          const counted = round++ % 5 === 0 ? this.#count(isStopped) : undefined;
          const page = await read<TaskList>("/v1/tasks", { ...wanted, limit, order, ...(suspended && { suspended }) });
          await counted;
          if (isStopped()) return;
          this.tasks.value = page?.tasks ?? [];
          this.more.value = page?.next !== undefined;
          this.problem.value = "";
        } catch (thrown) {
          if (!isStopped()) this.problem.value = thrown instanceof Error ? thrown.message : String(thrown);
        }
      },
      { onAct: () => (round = 0) },
    );
  }

  async #count(isStopped: () => boolean): Promise<void> {
    const [counts, paused, nodes, acts] = await Promise.all([
      read<Counts>("/v1/counts"),
      read<{ readonly agents: readonly PausedAgent[] }>("/v1/paused"),
      read<{ readonly nodes: readonly OperatedNode[] }>("/v1/nodes"),
      read<{ readonly acts: readonly Act[] }>("/v1/acts", { limit: 20 }),
    ]);
    if (isStopped()) return;
    this.counts.value = counts;
    this.paused.value = paused?.agents ?? [];
    this.nodes.value = nodes?.nodes ?? [];
    this.acts.value = acts?.acts ?? [];
  }
}
