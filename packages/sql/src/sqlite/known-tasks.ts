import type { TaskHead } from "@parley/a2a/store";
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

/** So many tasks are kept; up to as many again of those that were written longer ago. */
const mostKept = 4096;

/**
 * Tasks that are worked on, as the last transaction left them, so that a chunk does not look for its task. Good only for
 * as long as nobody else writes and nothing is rolled back. Nothing is deleted one by one: see `docs/decisions/hot-path.md`.
 */
export class KnownTasks {
  #young = new Map<string, KnownTask>();
  #old = new Map<string, KnownTask>();

  find(key: string): KnownTask | undefined {
    return this.#young.get(key) ?? this.#old.get(key);
  }

  keep(key: string, task: KnownTask): void {
    if (this.#young.size >= mostKept) {
      this.#old = this.#young;
      this.#young = new Map();
    }
    this.#young.set(key, task);
  }

  forget(): void {
    this.#young = new Map();
    this.#old = new Map();
  }
}
