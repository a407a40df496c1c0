import { postgresStore } from "@parley/sql/postgres";
import { available } from "./available.ts";
import type { Told } from "./history.ts";

/**
 * A node that reads a task only when it gets a wake-up. The states that it reads show whether wake-ups follow the commit. Returns a
 * function that ends it.
 */
export async function startWitness(database: string, note: (entry: Told) => void): Promise<() => Promise<void>> {
  const store = await available(() => postgresStore({ database, connections: 4 }));
  const look = async (taskId: string): Promise<void> => {
    const head = await store.head({ agent: "/resumable" }, taskId);
    if (head !== undefined) note({ type: "told", at: Date.now(), taskId, seq: head.seq });
  };
  const stop = store.wakeup.subscribe((taskId) => {
    // Ignores errors while the database is unavailable.
    if (taskId !== undefined) look(taskId).catch(() => {});
  });
  return async () => {
    stop();
    await store.close();
  };
}
