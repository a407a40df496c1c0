/** A map that has seen fewer deletions than this is not worth copying. */
const leastDeletions = 64;

/**
 * A map whose entries come and go all the time. A `Map` makes a new table whenever the old one has filled with what was
 * deleted, and the old table points to the new one: once a table has grown old, every later one, and all that passed
 * through them, is garbage that only a full collection finds. A copy after as many deletions as there are entries cuts
 * that chain, at a constant price an entry.
 *
 * Row `message` of the benchmarks needs it: with a `Map` a message takes 21 µs of CPU in process instead of 14 on Node 20,
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
    if (this.#deletions < leastDeletions || this.#deletions < this.#map.size) return;
    this.#map = new Map(this.#map);
    this.#deletions = 0;
  }

  /** As they are now: what comes and goes meanwhile may or may not be seen. */
  values(): IterableIterator<Value> {
    return this.#map.values();
  }
}
