import type { Clock } from "../../base/index.ts";
import {
  A2AError,
  countsInGeneration,
  hasGenerations,
  isTerminal,
  type SendMessageConfigurationDraft,
  type SendMessageRequest,
} from "../../model/index.ts";
import type { TaskHead } from "../../store/index.ts";
import { LogReader, pageSize, type Position } from "./reader.ts";

/** What the draft of 1.1 asks of the engine (§3.2.7 of the draft). */

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
  const stop = clock.after(timeout, close);
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
    stop();
    signal?.removeEventListener("abort", close);
    reader.close();
  }
}

/** The generation of a task at a place in its log: that of its head, less what came since, the user's messages apart. */
export async function generationAt({ store, scope, task: { taskId } }: Position, after: number): Promise<number> {
  let messages = 0;
  for (let at = after; ;) {
    const page = await store.read(scope, taskId, { after: at, limit: pageSize, kinds: ["message"] });
    if (page === undefined) throw new A2AError("TaskNotFound", undefined, { metadata: { taskId } });
    messages += page.records.length;
    const last = page.records.at(-1);
    if (last === undefined || last.seq === page.head.seq) {
      return page.head.generation - (page.head.seq - after - messages);
    }
    at = last.seq;
  }
}

/** §3.2.2 of the 1.1 draft; a message that makes its task comes to none that could have moved. */
export function wantedGeneration(request: SendMessageRequest, version: string): number | undefined {
  const configuration: SendMessageConfigurationDraft | undefined = request.configuration;
  return hasGenerations(version) ? configuration?.ifGenerationMatch : undefined;
}

export function hasMovedOn({ task: { taskId }, generation }: TaskHead, wanted: number): A2AError {
  return new A2AError("TaskGenerationMismatch", `The task is at generation ${generation}, not at ${wanted}`, {
    metadata: { taskId, expectedGeneration: String(wanted), currentGeneration: String(generation) },
  });
}
