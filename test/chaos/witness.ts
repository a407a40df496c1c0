import { postgresStore } from "@parley/sql/postgres";
import { available } from "./available.ts";
import type { Told } from "./history.ts";

/**
 * A node that reads a task when it is told that it has changed, and at no other time. What it has seen of a task shows whether nodes are told
 * after the commit. Returns a function that ends it.
 */
export async function startWitness(database: string, note: (entry: Told) => void): Promise<() => Promise<void>> {
  const store = await available(() => postgresStore({ database, connections: 4 }));
  const look = async (taskId: string): Promise<void> => {
    const head = await store.head({ agent: "/resumable" }, taskId);
    if (head !== undefined) note({ type: "told", at: Date.now(), taskId, seq: head.seq });
  };
  const stop = store.wakeup.subscribe((taskId) => {
    // While the database is unavailable it sees nothing.
    if (taskId !== undefined) look(taskId).catch(() => {});
  });
  return async () => {
    stop();
    await store.close();
  };
}
