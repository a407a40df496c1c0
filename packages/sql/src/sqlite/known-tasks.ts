import type { TaskHead } from "@parley/a2a/store";
import { Generations, memoryOf } from "./generations.ts";
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
}

/** What the objects of one take. */
const objects = 600;
/** Of memory, and up to as many of tasks that were written longer ago. */
const mostBytes = 4 << 20;

/**
 * Tasks that are worked on, as the last transaction left them, so that a chunk does not look for its task. Good only for
 * as long as nobody else writes and nothing is rolled back.
 */
export class KnownTasks {
  readonly #tasks = new Generations<KnownTask>(mostBytes);

  find(key: string): KnownTask | undefined {
    return this.#tasks.find(key);
  }

  keep(key: string, task: KnownTask): void {
    const { contextId, holder } = task.head;
    this.#tasks.keep(key, task, objects + memoryOf(key, key, contextId, holder));
  }

  forget(): void {
    this.#tasks.forget();
  }
}
