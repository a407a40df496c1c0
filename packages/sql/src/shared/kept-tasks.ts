import { BoundedMap, memoryOf } from "@parley/a2a/internal/base/bounded-map";
import type { LoadOptions } from "@parley/server/internal/store/index";

// The texts of tasks that were read.

/** What an index and the row of a task say of it. */
export interface Place {
  readonly number: number;
  readonly id: string;
  readonly seq: number;
  readonly statusTime: number;
  /** Of its whole log: no text of the task has more. */
  readonly bytes: number;
}

/**
 * The key of a task's text in `KeptTasks`, which changes with each record. Another process may delete the task and create
 * one of the same id and number: its status is newer than that of a task old enough to be deleted.
 */
export function keyOf(
  { number, seq, statusTime, id }: Omit<Place, "bytes">,
  { history, artifacts, mergeTextParts = false }: LoadOptions,
): string {
  return `${number}/${seq}/${statusTime}/${history ?? ""}/${artifacts}/${mergeTextParts}/${id}`;
}

/** Bytes of memory. */
const maxBytes = 16 << 20;

/** The JSON text of tasks that were read: most tasks are over, and are read again. Keeps no large task. */
export class KeptTasks {
  readonly #tasks = new BoundedMap<string>({ bytes: maxBytes, bytesOf: memoryOf });

  find(key: string): string | undefined {
    return this.#tasks.get(key);
  }

  keep(key: string, json: string): void {
    if (memoryOf(key, json) <= maxBytes / 16) this.#tasks.set(key, json);
  }

  forget(): void {
    this.#tasks.clear();
  }
}
