import { BoundedMap, memoryOf, type TaskHead } from "@parley/a2a/store";
import type { TaskRow } from "./rows.ts";

/** A task as a writer knows it. */
export interface KnownTask {
  readonly row: Pick<TaskRow, "number" | "agent" | "owner" | "context">;
  /** As the table has them: no head, while the transaction lasts that makes the task. */
  stored: TaskHead | undefined;
  storedStatus: number;
  head: TaskHead;
  statusSeq: number;
  hasMetadata: boolean;
  /** Whether features may keep rows with it. */
  hasFeatures: boolean;
}

/** What the objects of one take. */
const objects = 600;
/** Of memory. */
const mostBytes = 8 << 20;

/**
 * Tasks that are worked on, as the last transaction left them, so that a chunk does not look for its task. Good only for
 * as long as nobody else writes and nothing is rolled back.
 */
export function knownTasks(): BoundedMap<KnownTask> {
  const bytesOf = (key: string, { head: { contextId, holder } }: KnownTask): number =>
    objects + memoryOf(key, key, contextId, holder);
  return new BoundedMap({ bytes: mostBytes, bytesOf });
}
