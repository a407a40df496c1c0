import { signal, type Signal } from "@preact/signals";
import type { Counts, OperatedNode, OperatedTask, TaskList } from "@parley/server/internal/operate/port";
import { acted } from "./act.tsx";
import { read } from "./api.ts";

/** Which tasks are shown. Empty texts exclude none. */
export interface Filter {
  readonly states: string;
  readonly agent: string;
  readonly owner: string;
  readonly node: string;
  readonly suspended: boolean;
  readonly order: "newest" | "oldest";
  readonly limit: number;
}

export const anything: Filter = {
  states: "",
  agent: "",
  owner: "",
  node: "",
  suspended: false,
  order: "newest",
  limit: 50,
};

/** Most tasks of a page. */
export const maxTasks = 500;

/** What operators see: tasks of all owners, agents and nodes, read again while they are shown. */
export class Operated {
  readonly tasks: Signal<readonly OperatedTask[] | undefined> = signal(undefined);
  /** Whether there are more. */
  readonly more: Signal<boolean> = signal(false);
  readonly counts: Signal<Counts | undefined> = signal(undefined);
  readonly nodes: Signal<readonly OperatedNode[]> = signal([]);
  readonly problem: Signal<string> = signal("");

  /** Reads now, after each act, and every other second. Returns a function that stops it. */
  follow(filter: Filter): () => void {
    return polled(async (isStopped) => {
      try {
        const { states, agent, owner, node, suspended, order, limit } = filter;
        const wanted = Object.fromEntries(
          Object.entries({ states, agent, owner, node }).filter(([, value]) => value !== ""),
        );
        const [page, counts, nodes] = await Promise.all([
          read<TaskList>("/v1/tasks", { ...wanted, limit, order, ...(suspended && { suspended }) }),
          read<Counts>("/v1/counts"),
          read<{ readonly nodes: readonly OperatedNode[] }>("/v1/nodes"),
        ]);
        if (isStopped()) return;
        this.tasks.value = page?.tasks ?? [];
        this.more.value = page?.next !== undefined;
        this.counts.value = counts;
        this.nodes.value = nodes?.nodes ?? [];
        this.problem.value = "";
      } catch (thrown) {
        if (!isStopped()) this.problem.value = thrown instanceof Error ? thrown.message : String(thrown);
      }
    });
  }
}

/** Runs something now, after each act, and every other second while the page is visible. Returns a function that stops it. */
export function polled(work: (isStopped: () => boolean) => Promise<void>): () => void {
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
  const leave = acted.subscribe(() => void next());
  return () => {
    isStopped = true;
    leave();
    clearTimeout(timer);
  };
}
