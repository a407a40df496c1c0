import { postgresStore } from "@parley/sql/postgres";
import { available } from "./available.ts";
import type { Told } from "./history.ts";

/**
 * Starts a node that reads a task only when it gets a wake-up. Its readings show whether wake-ups follow the commit. Returns a function that
 * ends the node.
 */
export async function startWitness(database: string, note: (entry: Told) => void): Promise<() => Promise<void>> {
  const store = await available(() => postgresStore({ database, connections: 4 }));
  const look = async (taskId: string): Promise<void> => {
    const head = await store.head({ agent: "/resumable" }, taskId);
    if (head !== undefined) note({ type: "told", at: Date.now(), taskId, seq: head.seq });
  };
  const stop = store.wakeup.subscribe((taskId) => {
    // Ignores errors, because the database may be unavailable.
    if (taskId !== undefined) look(taskId).catch(() => {});
  });
  return async () => {
    stop();
    await store.close();
  };
}
