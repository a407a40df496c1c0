import type { Store } from "@parley/server";

export interface Filling {
  /** The id of a task in the store, of which all others are copies. */
  readonly template: string;
  readonly count: number;
  /** The number of contexts over which the copies are distributed. */
  readonly contexts: number;
}

const batch = 500;

/** Fills a store with copies of a task, with timestamps one millisecond apart. Faster than requests. */
export async function fill(store: Store, { template, count, contexts }: Filling): Promise<void> {
  const page = await store.read({ agent: "/" }, template, { after: 0, limit: 100 });
  if (page === undefined) throw new Error("the task to copy does not exist");
  const { task, contextId } = page.head;
  const first = Date.now() - count;
  for (let from = 0; from < count; from += batch) {
    const items = Array.from({ length: Math.min(batch, count - from) }, (_, at) => {
      const number = from + at;
      const taskId = copyOf(task.taskId, number);
      const context = copyOf(contextId, number % contexts);
      const records = page.records.map(({ seq: _seq, ...record }) => ({
        ...record,
        json: record.json
          .replaceAll(task.taskId, taskId)
          .replaceAll(contextId, context)
          .replaceAll(/(?<="timestamp":")[^"]+/g, new Date(first + number).toISOString()),
        time: first + number,
      }));
      return { task: { ...task, taskId }, create: { contextId: context }, records };
    });
    const outcomes = await store.append(items);
    if (!outcomes.every(({ ok }) => ok)) throw new Error("a copy could not be stored");
    // Lets the server answer requests in between.
    await new Promise(setImmediate);
  }
}

/** A new identifier of the same length. */
function copyOf(id: string, number: number): string {
  return id.slice(0, -8) + number.toString(16).padStart(8, "0");
}
