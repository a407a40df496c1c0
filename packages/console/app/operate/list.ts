import { signal, type Signal } from "@preact/signals";
import type { Act, Counts, OperatedNode, OperatedTask, TaskList } from "@parley/server/internal/operate/port";
import { acted } from "./act.tsx";
import { read } from "./api.ts";

/** Which tasks are shown. Empty texts exclude none. */
export interface Filter {
  /** What the tasks on the page have to have: a part of an id, an owner or an agent. */
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

/** What is shown. It stays while the page is open. */
export const filter = signal(anything);

/** Whether a task has the text of a filter. */
export function holds(text: string): (task: OperatedTask) => boolean {
  const wanted = text.toLowerCase();
  return ({ taskId, contextId, owner, agent }) =>
    [taskId, contextId, owner, agent].some((each) => each.toLowerCase().includes(wanted));
}

/** The agent of a task anywhere on the server, by the id of its mount. */
export async function agentOf(taskId: string): Promise<string | undefined> {
  const { agents = [] } = (await read<Counts>("/v1/counts")) ?? {};
  for (const { agent } of agents.slice(0, 50)) {
    if ((await read("/v1/why", { agent, taskId })) !== undefined) return agent;
  }
  return undefined;
}

/** Most tasks of a page. */
export const maxTasks = 500;

/** What operators see: tasks of all owners, agents and nodes, read again while they are shown. */
export class Operated {
  readonly tasks: Signal<readonly OperatedTask[] | undefined> = signal(undefined);
  /** Whether there are more. */
  readonly more: Signal<boolean> = signal(false);
  readonly counts: Signal<Counts | undefined> = signal(undefined);
  readonly nodes: Signal<readonly OperatedNode[]> = signal([]);
  /** The newest acts of operators. */
  readonly acts: Signal<readonly Act[]> = signal([]);
  readonly problem: Signal<string> = signal("");

  /** Reads now, after each act, and every other second. Returns a function that stops it. */
  follow(filter: Filter): () => void {
    let round = 0;
    return polled(
      async (isStopped) => {
        try {
          const { states, agent, owner, node, suspended, order, limit } = filter;
          const wanted = Object.fromEntries(
            Object.entries({ states, agent, owner, node }).filter(([, value]) => value !== ""),
          );
          // To count is more work for the server.
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
      () => (round = 0),
    );
  }

  async #count(isStopped: () => boolean): Promise<void> {
    const [counts, nodes, acts] = await Promise.all([
      read<Counts>("/v1/counts"),
      read<{ readonly nodes: readonly OperatedNode[] }>("/v1/nodes"),
      read<{ readonly acts: readonly Act[] }>("/v1/acts", { limit: 20 }),
    ]);
    if (isStopped()) return;
    this.counts.value = counts;
    this.nodes.value = nodes?.nodes ?? [];
    this.acts.value = acts?.acts ?? [];
  }
}

/**
 * Runs something now, after each act, and every other second while the page is visible. Returns a function that stops it.
 *
 * @param onAct - Called before the work that an act causes.
 */
export function polled(work: (isStopped: () => boolean) => Promise<void>, onAct: () => unknown = () => {}): () => void {
  let isStopped = false;
  let timer: ReturnType<typeof setTimeout> | undefined;
  let round = 0;
  const next = async (): Promise<void> => {
    clearTimeout(timer);
    const own = ++round;
    if (!document.hidden) await work(() => isStopped || own !== round);
    if (!isStopped && own === round) timer = setTimeout(() => void next(), 2_000);
  };
  // It is called at once, too.
  const leave = acted.subscribe(() => {
    onAct();
    void next();
  });
  return () => {
    isStopped = true;
    leave();
    clearTimeout(timer);
  };
}
