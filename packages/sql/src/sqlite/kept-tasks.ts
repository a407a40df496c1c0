import type { LoadOptions } from "@parley/a2a/store";

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

/** So many characters of tasks are kept, up to as many again of older ones, and none that is large alone. */
const mostKept = 4 << 20;

/** Tasks as JSON text, for those who ask for the same again: most tasks are over, and are read many times. */
export class KeptTasks {
  #young = new Map<string, string>();
  #old = new Map<string, string>();
  #kept = 0;

  find(key: string): string | undefined {
    return this.#young.get(key) ?? this.#old.get(key);
  }

  keep(key: string, json: string): void {
    if (this.#young.has(key) || json.length > mostKept / 8) return;
    this.#young.set(key, json);
    this.#kept += json.length;
    if (this.#kept >= mostKept) this.#turn();
  }

  forget(): void {
    this.#turn();
    this.#turn();
  }

  #turn(): void {
    this.#old = this.#young;
    this.#young = new Map();
    this.#kept = 0;
  }
}
