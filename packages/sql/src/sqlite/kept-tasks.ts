import type { LoadOptions } from "@parley/a2a/store";
import { Generations, memoryOf } from "./generations.ts";

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

/** Of memory, and up to as many of older tasks. */
const mostBytes = 8 << 20;

/** Tasks as JSON text, for those who ask for the same again: most tasks are over, and are read many times. None that is large alone. */
export class KeptTasks {
  readonly #tasks = new Generations<string>(mostBytes);

  find(key: string): string | undefined {
    return this.#tasks.find(key);
  }

  keep(key: string, json: string): void {
    const bytes = memoryOf(key, json);
    if (bytes <= mostBytes / 8) this.#tasks.keep(key, json, bytes);
  }

  forget(): void {
    this.#tasks.forget();
  }
}
