import type { TaskState } from "@parley/a2a/internal/model/index";
import type { EraseOptions, Erasure } from "./owner-data.ts";
import type { ClaimPosition, Owner, Store, StoreOperators, SweepOptions, TaskHead, Upkeep } from "./port.ts";

/* What operators do with a store: retention, the data of an owner, and suspended tasks. */

/** The states in which a sweep deletes tasks. */
export const sweptStates: readonly TaskState[] = [
  "TASK_STATE_COMPLETED",
  "TASK_STATE_FAILED",
  "TASK_STATE_CANCELED",
  "TASK_STATE_REJECTED",
];

type Times = Pick<SweepOptions, "deleteBefore" | "rules">;

/**
 * Tasks of an agent in a state are deleted if their status is older than this. `state` absent: conversations of the agent that have no task.
 * `-Infinity`: none.
 */
export function deletesBefore({ deleteBefore, rules = [] }: Times, agent: string, state?: TaskState): number {
  const rule = rules.find(
    (each) => (each.agent === undefined || each.agent === agent) && (each.state === undefined || each.state === state),
  );
  return rule?.deleteBefore ?? deleteBefore ?? -Infinity;
}

/** Every terminal task with an older status is deleted, of any agent and in any state. `-Infinity`: not certain for any. */
export function deletesAllBefore({ deleteBefore, rules = [] }: Times): number {
  return Math.min(deleteBefore ?? -Infinity, ...rules.map((rule) => rule.deleteBefore));
}

/** Loads the code of an `upkeep` on use: most programs never do. `load` is called each time. */
export function lazyUpkeep(load: () => Promise<Upkeep>): Upkeep {
  return {
    owners: async (query) => (await load()).owners(query),
    count: async (selection) => (await load()).count(selection),
    find: async (selection, limit) => (await load()).find(selection, limit),
    remove: async (selection, limit) => (await load()).remove(selection, limit),
    contexts: async (owner, page) => (await load()).contexts(owner, page),
    replies: async (context, page) => (await load()).replies(context, page),
    forget: async (owner, limit) => (await load()).forget(owner, limit),
    scrub: async () => (await load()).scrub(),
  };
}

/** The same for `operators`. */
export function lazyOperators(load: () => Promise<StoreOperators>): StoreOperators {
  return {
    tasks: async (query) => (await load()).tasks(query),
    counts: async (limit) => (await load()).counts(limit),
    orders: async () => (await load()).orders(),
    change: async (change) => (await load()).change(change),
    acts: async (query) => (await load()).acts(query),
  };
}

/**
 * Deletes all that an owner has: its tasks, after canceling those that are not over, its conversations, keys, and its name. Each transaction is
 * short. Files of the database may still have remains: see `Upkeep.scrub`.
 *
 * @throws A2AError `Unavailable` if the owner keeps creating tasks: withdraw its access first.
 */
export async function eraseOwner(store: Store, owner: Owner, options?: EraseOptions): Promise<Erasure> {
  const { erase } = await import("./owner-data.ts");
  return erase(store, owner, options);
}

/**
 * All that an owner has, as JSON Lines (docs/retention.md): its conversations with their direct replies, and its tasks. Yields pieces of text,
 * so that no task has to fit into one string. Without the last line, of type `end`, the export is incomplete.
 *
 * @param agents - Ids of the agents whose tasks are exported.
 */
export async function* exportOwner(
  store: Store,
  owner: string,
  agents: readonly string[],
): AsyncGenerator<string, void, void> {
  const { exported } = await import("./owner-data.ts");
  yield* exported(store, owner, agents);
}

/** Runs of one page, and agents with runs. */
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
 * Resumes a suspended task: a process takes it over, and its crashes are counted from 0. Processes are told as of a free run, so they do not
 * wait for their next poll.
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
