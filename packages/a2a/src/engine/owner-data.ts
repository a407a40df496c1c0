import { deferred } from "../base/index.ts";
import type { Principal } from "../protocol/index.ts";
import { erase, exported, upkeepOf, type Erasure } from "../store/owner-data.ts";
import type { Conversations } from "./conversations.ts";
import type { EngineSettings } from "./options.ts";
import type { Sends } from "./service/index.ts";
import type { Runs } from "./supervise/index.ts";

export type { Erasure } from "../store/owner-data.ts";

/** Options of `deleteOwner()`. */
export interface DeleteOwnerOptions {
  /**
   * Whether the files of the database are rewritten, so that nothing of the deleted data is left in them. SQLite copies its whole file, and
   * nobody can write meanwhile: runs of other processes that wait for more than 5 seconds are given up, whoever their owner is. Default false.
   */
  readonly scrub?: boolean;
}

interface Rooms {
  readonly settings: EngineSettings;
  readonly runs: Pick<Runs, "all" | "endTask">;
  readonly conversations: Pick<Conversations, "forget">;
  readonly sends: Pick<Sends, "forget">;
  /** Ids of the agents of this server. */
  readonly agents: readonly string[];
}

/** Milliseconds for runs to end that were canceled. What they store later is refused, with their task gone. */
const endTimeout = 2_000;

/** Deletes all that a principal owns: in the store, and in the memory of this process. */
export async function deleteOwner(
  { settings, runs, conversations, sends, agents }: Rooms,
  of: Principal | string,
  { scrub = false }: DeleteOwnerOptions = {},
): Promise<Erasure> {
  const { store, ownerOf, clock, blobs } = settings;
  const upkeep = upkeepOf(store);
  const name = typeof of === "string" ? of : ownerOf(of);
  const message = { parts: [{ text: "The data of this user is deleted, and the task was canceled." }] };
  const ending = [...runs.all()].filter(({ key }) => key.owner === name).map((run) => run.done);
  let [tasks, canceled] = [0, 0];
  for (const agent of agents) {
    const owner = { agent, owner: name };
    const erased = await erase(store, owner, {
      cancel: (head) => runs.endTask(head, { state: "TASK_STATE_CANCELED", message }, {}),
      async onCanceled() {
        const timeout = deferred<void>();
        const clear = clock.after(endTimeout, () => timeout.resolve());
        await Promise.race([Promise.all(ending), timeout.promise]);
        clear();
      },
    });
    await (await blobs?.load())?.deleteOf(owner);
    tasks += erased.tasks;
    canceled += erased.canceled;
    conversations.forget(owner);
    sends.forget(owner);
  }
  if (scrub) await upkeep.scrub();
  return { tasks, canceled };
}

/** All that a principal owns, as JSON Lines. */
export function exportOwned(
  { store, ownerOf }: EngineSettings,
  agents: readonly string[],
  of: Principal | string,
): AsyncIterable<string> {
  return exported(store, typeof of === "string" ? of : ownerOf(of), agents);
}
