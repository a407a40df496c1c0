import type { ClaimPosition, Store, TaskHead } from "./port.ts";

/** Runs of one page, and agents whose runs are looked at. */
const [pageSize, maxAgents] = [500, 1_000];
/** By this time every lease has expired. */
const ever = Number.MAX_SAFE_INTEGER;

/**
 * The suspended tasks: those that no process takes over because their process died on every attempt.
 *
 * @param agent - Only those of this agent. Default: of every agent.
 */
export async function* suspendedTasks(store: Store, agent?: string): AsyncGenerator<TaskHead, void, void> {
  const agents =
    agent === undefined
      ? (await store.stranded({ now: ever, agents: [], limit: maxAgents })).map((each) => each.agent)
      : [agent];
  if (agents.length === 0) return;
  for (let after: ClaimPosition | undefined; ;) {
    const page = await store.claimable({ now: ever, agents, limit: pageSize, ...(after && { after }) });
    yield* page.heads.filter(({ run }) => run?.suspended === true);
    if (page.next === undefined) return;
    after = page.next;
  }
}

/**
 * Resumes a suspended task: a process takes it over, and its crashes are counted from 0. Processes are told, as of a task that was left, so
 * they need not wait for their next look.
 *
 * @param agent - Its agent, by `id`.
 * @returns Whether the task was suspended.
 */
export async function resumeTask(store: Store, agent: string, taskId: string): Promise<boolean> {
  const head = await store.head({ agent }, taskId);
  if (head?.run?.suspended !== true) return false;
  const { turn, attempt, input } = head.run;
  const effects = [
    { effect: "run", run: { turn, attempt, input } },
    { effect: "lease", op: "release" },
  ] as const;
  const [outcome] = await store.append([{ task: head.task, fence: head.fence, run: head.run, records: [], effects }]);
  return outcome?.ok === true;
}
