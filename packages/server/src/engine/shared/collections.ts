/** Below this number of deletions a map is not copied. */
const minDeletions = 64;

/**
 * A map for entries that are constantly added and deleted. A `Map` creates a new table when deleted entries have filled the old
 * one, and the old table points to the new one. Once a table is in the old generation, all later tables and their entries are
 * garbage that only a full collection finds. This map copies itself after as many deletions as it has entries, which cuts that
 * chain at a constant cost for each entry.
 *
 * Row `message` of the benchmarks needs this class: with a `Map` a message takes 21 µs of CPU in process instead of 14 on Node 20,
 * and 18 instead of 14 on Node 24 (docs/decisions/hot-path.md).
 */
export class ChurnMap<Key, Value> {
  #map = new Map<Key, Value>();
  #deletions = 0;

  get size(): number {
    return this.#map.size;
  }

  get(key: Key): Value | undefined {
    return this.#map.get(key);
  }

  has(key: Key): boolean {
    return this.#map.has(key);
  }

  set(key: Key, value: Value): void {
    this.#map.set(key, value);
  }

  delete(key: Key): void {
    if (!this.#map.delete(key)) return;
    this.#deletions += 1;
    if (this.#deletions < minDeletions || this.#deletions < this.#map.size) return;
    this.#map = new Map(this.#map);
    this.#deletions = 0;
  }

  /** Entries that are set or deleted during the iteration may or may not be seen. */
  values(): IterableIterator<Value> {
    return this.#map.values();
  }
}

/** Notifies listeners, so that lower stages need not know the stages above them. */
export class Emitter<Args extends readonly unknown[] = []> {
  #listeners: readonly ((...args: Args) => void)[] = [];

  get hasListeners(): boolean {
    return this.#listeners.length > 0;
  }

  on(listener: (...args: Args) => void): void {
    this.#listeners = [...this.#listeners, listener];
  }

  emit(...args: Args): void {
    for (const listener of this.#listeners) listener(...args);
  }
}
