import type { TaskState } from "@parley/a2a/internal/model/index";
import type { EraseOptions, Erasure } from "./owner-data.ts";
import type { Owner, Store, StoreOperators, SweepOptions, Upkeep } from "./port.ts";

/* Operations on a store: retention, the data of an owner, and suspended tasks. */

/** The states in which a sweep deletes tasks. */
export const sweptStates: readonly TaskState[] = [
  "TASK_STATE_COMPLETED",
  "TASK_STATE_FAILED",
  "TASK_STATE_CANCELED",
  "TASK_STATE_REJECTED",
];

type Times = Pick<SweepOptions, "deleteBefore" | "rules">;

/**
 * Tasks of an agent in a state are deleted if their status is older than this time. `state` absent: the time for conversations of the agent that
 * have no task. `-Infinity`: nothing is deleted.
 */
export function deletesBefore({ deleteBefore, rules = [] }: Times, agent: string, state?: TaskState): number {
  const rule = rules.find(
    (each) => (each.agent === undefined || each.agent === agent) && (each.state === undefined || each.state === state),
  );
  return rule?.deleteBefore ?? deleteBefore ?? -Infinity;
}

/** Every terminal task with a status older than this time is deleted, of any agent and in any state. `-Infinity`: no such time. */
export function deletesAllBefore({ deleteBefore, rules = [] }: Times): number {
  return Math.min(deleteBefore ?? -Infinity, ...rules.map((rule) => rule.deleteBefore));
}

/** Loads the code of an `upkeep` on use, because most programs never use it. `load` is called each time. */
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

/** Like `lazyUpkeep`, for `operators`. */
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
 * Deletes all data of an owner: tasks (after canceling unfinished ones), conversations, keys, and the owner's name. Each
 * transaction is short. The database files may still contain deleted data: see `Upkeep.scrub`.
 *
 * @throws A2AError `Unavailable` if the owner keeps creating tasks. Withdraw the owner's access first.
 */
export async function eraseOwner(store: Store, owner: Owner, options?: EraseOptions): Promise<Erasure> {
  const { erase } = await import("./owner-data.ts");
  return erase(store, owner, options);
}

/**
 * Exports all data of an owner as JSON Lines (docs/retention.md): its conversations with their direct replies, and its tasks. Yields pieces of
 * text, so that no task has to fit into one string. Without the last line, of type `end`, the export is incomplete.
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
