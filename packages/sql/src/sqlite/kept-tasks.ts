import { BoundedMap, memoryOf, type LoadOptions } from "@parley/a2a/store";

/** Where a task stands: what its index and its row say of it. */
export interface Place {
  readonly number: number;
  readonly id: string;
  readonly seq: number;
  readonly statusTime: number;
  /** Of its whole log: no text of the task is larger. */
  readonly bytes: number;
}

/**
 * What a task's text is kept under: another one after each record. Another process may delete the task and make one of
 * the same id and number: its status is younger than one that was old enough to be deleted.
 */
export function keyOf(
  { number, seq, statusTime, id }: Omit<Place, "bytes">,
  { history, artifacts }: LoadOptions,
): string {
  return `${number}/${seq}/${statusTime}/${history ?? ""}/${artifacts}/${id}`;
}

/** Of memory. */
const mostBytes = 16 << 20;

/** Tasks as JSON text, for those who ask for the same again: most tasks are over, and are read many times. None that is large alone. */
export class KeptTasks {
  readonly #tasks = new BoundedMap<string>({ bytes: mostBytes, bytesOf: memoryOf });

  find(key: string): string | undefined {
    return this.#tasks.get(key);
  }

  keep(key: string, json: string): void {
    if (memoryOf(key, json) <= mostBytes / 16) this.#tasks.set(key, json);
  }

  forget(): void {
    this.#tasks.clear();
  }
}
