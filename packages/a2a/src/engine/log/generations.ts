import type { Clock } from "../../base/index.ts";
import { A2AError, countsInGeneration, isTerminal } from "../../model/index.ts";
import type { TaskHead } from "../../store/index.ts";
import { LogReader, pageSize, type Position } from "./reader.ts";

/*
 * Generations count the changes of a task that its readers see: its creation, statuses and artifacts, but no messages of
 * the user (1.1 draft, §3.2.7).
 */

/**
 * Waits until a task is beyond a generation, is over, or `timeout` milliseconds have passed. Of a task that is over nothing
 * more can come.
 */
export async function waitForGeneration(
  from: Position,
  head: TaskHead,
  beyond: number,
  timeout: number,
  clock: Clock,
  signal: AbortSignal | undefined,
): Promise<void> {
  let { generation, state } = head;
  if (generation > beyond || isTerminal(state) || signal?.aborted === true) return;
  const reader = new LogReader(from);
  const close = (): void => reader.close();
  const clearTimer = clock.after(timeout, close);
  signal?.addEventListener("abort", close, { once: true });
  try {
    while (generation <= beyond && !isTerminal(state)) {
      const records = await reader.read();
      if (records === undefined) return;
      for (const record of records) {
        if (countsInGeneration(record.kind)) generation += 1;
        state = record.state ?? state;
      }
    }
  } finally {
    clearTimer();
    signal?.removeEventListener("abort", close);
    reader.close();
  }
}

/** The generation of a task at a `seq` of its log: that of its head, less the records since that count. */
export async function generationAt({ store, scope, task: { taskId } }: Position, seq: number): Promise<number> {
  let messages = 0;
  for (let after = seq; ;) {
    const page = await store.read(scope, taskId, { after, limit: pageSize, kinds: ["message"] });
    if (page === undefined) throw new A2AError("TaskNotFound", undefined, { metadata: { taskId } });
    messages += page.records.length;
    const last = page.records.at(-1);
    if (last === undefined || last.seq === page.head.seq) {
      return page.head.generation - (page.head.seq - seq - messages);
    }
    after = last.seq;
  }
}
