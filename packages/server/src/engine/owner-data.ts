import type { Principal } from "@parley/a2a/internal/protocol/index";
import type { Owner } from "../store/index.ts";
import { agentsOf, erase, exported, stillCreatesTasks, upkeepOf, type Erasure } from "../store/owner-data.ts";
import type { Conversations } from "./conversations/conversations.ts";
import type { Committer } from "./log/index.ts";
import type { EngineSettings } from "./shared/settings.ts";
import type { Sends } from "./service/index.ts";
import type { Runs } from "./supervise/index.ts";
import { endsWithin } from "@parley/a2a/internal/base/async";

export type { Erasure } from "../store/owner-data.ts";

/** Options of `deleteOwner()`. */
export interface DeleteOwnerOptions {
  /**
   * Rewrites the files of the database, so that they contain none of the deleted data. SQLite copies its whole file and blocks
   * all writes meanwhile. After 5 seconds, other processes give up runs that wait to write, of any owner. Default false.
   */
  readonly scrub?: boolean;
}

interface ErasureDeps {
  readonly settings: EngineSettings;
  readonly committer: Pick<Committer, "append">;
  readonly runs: Pick<Runs, "all" | "endTask">;
  readonly conversations: Pick<Conversations, "forget">;
  readonly sends: Pick<Sends, "forget">;
  readonly agents: readonly string[];
}

/** How long canceled runs may take to end, in milliseconds. Later appends fail because the task is gone. */
const endTimeout = 2_000;
/** Maximum rounds for an owner that keeps sending messages. */
const maxRounds = 20;

export async function deleteOwner(
  deps: ErasureDeps,
  of: Principal | string,
  { scrub = false }: DeleteOwnerOptions = {},
): Promise<Erasure> {
  const { settings } = deps;
  const { store, ownerOf, blobs } = settings;
  const upkeep = upkeepOf(store);
  const name = typeof of === "string" ? of : ownerOf(of);
  let [tasks, canceled] = [0, 0];
  const agents = new Set<string>();
  for (let round = 0; ; round += 1) {
    if (round === maxRounds) throw stillCreatesTasks();
    await endMessages(deps, name);
    for (const agent of await agentsOf(upkeep, name, deps.agents)) {
      agents.add(agent);
      const erased = await eraseWith(deps, { agent, owner: name });
      tasks += erased.tasks;
      canceled += erased.canceled;
    }
    const left = runsOf(deps, name).map(({ done }) => done);
    if (left.length === 0) break;
    await endsWithin(settings.clock, endTimeout, Promise.all(left));
  }
  // Delete files last, because their store may be unavailable, and the rest is then already deleted.
  const files = await blobs?.load();
  for (const agent of agents) await files?.deleteOf({ agent, owner: name });
  if (scrub) await upkeep.scrub();
  return { tasks, canceled };
}

function runsOf({ runs }: ErasureDeps, name: string) {
  return [...runs.all()].filter(({ key }) => key.owner === name);
}

/** Ends the runs of messages without a task. The store has no task to cancel, but the next event of such a run would create one. */
async function endMessages(deps: ErasureDeps, name: string): Promise<void> {
  const own = runsOf(deps, name).filter(({ phase }) => phase.fence === undefined);
  for (const { phase } of own) phase.lose("canceled");
  // Appends run in order, so once this append has failed, all earlier appends are stored, and their data is deleted with the rest.
  await Promise.all(own.map(({ key }) => deps.committer.append({ task: key, records: [] })));
}

/** Deletes an owner's data at an agent, after canceling its tasks in all processes. */
async function eraseWith(deps: ErasureDeps, owner: Owner): Promise<Erasure> {
  const { settings, runs, conversations, sends, agents } = deps;
  const message = { parts: [{ text: "The data of this user is deleted, and the task was canceled." }] };
  const ending = runsOf(deps, owner.owner).map(({ done }) => done);
  const erased = await erase(settings.store, owner, {
    ...(agents.includes(owner.agent) && {
      cancel: (head) => runs.endTask(head, { state: "TASK_STATE_CANCELED", message }, {}),
    }),
    onCanceled: async () => void (await endsWithin(settings.clock, endTimeout, Promise.all(ending))),
  });
  conversations.forget(owner);
  sends.forget(owner);
  return erased;
}

export async function* exportOwned(
  { store, ownerOf, blobs }: EngineSettings,
  agents: readonly string[],
  of: Principal | string,
): AsyncGenerator<string, void, void> {
  const name = typeof of === "string" ? of : ownerOf(of);
  const pieces = exported(store, name, await agentsOf(upkeepOf(store), name, agents));
  yield* blobs?.inlined(pieces, name) ?? pieces;
}
