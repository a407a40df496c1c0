import type { AppendItem } from "@parley/server/store";
import type { PostgresStore } from "@parley/sql/postgres";

/* Faults in a store. The checker must find them. */

/** `fence`: an append is stored although its lease was lost. `notify`: other nodes learn of a change before its commit. */
export type Mutation = "fence" | "notify";

export const mutations: readonly Mutation[] = ["fence", "notify"];

/** Adds a fault to a store. */
export function mutated(store: PostgresStore, mutation: Mutation): void {
  const append = store.append.bind(store);
  if (mutation === "fence") {
    store.append = async (items) => append(await Promise.all(items.map((item) => underAnyFence(store, item))));
    return;
  }
  const publish = store.wakeup.publish.bind(store.wakeup);
  store.wakeup.publish = () => {};
  store.append = async (items) => {
    publish(items.flatMap((item) => ("task" in item ? [item.task.taskId] : [])));
    // After this time, everything that was published has arrived everywhere, even on a busy machine.
    await new Promise((resolve) => setTimeout(resolve, 400));
    return append(items);
  };
}

/** Returns the item with the task's current fence, whichever fence the node holds. */
async function underAnyFence(store: PostgresStore, item: AppendItem): Promise<AppendItem> {
  if (!("task" in item) || item.fence === undefined || item.records.length === 0) return item;
  const fence = (await store.head(item.task, item.task.taskId))?.fence ?? item.fence;
  return { ...item, fence };
}
