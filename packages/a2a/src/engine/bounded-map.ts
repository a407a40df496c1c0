/**
 * A map that forgets what was put in first: it holds the newest `limit` entries, and up to as many older ones, and all of
 * them together hold `bytes` at most. Two generations and no queue, since a `Map` whose oldest entries are deleted one by one
 * searches its holes for the next.
 */
export class BoundedMap<Key, Value> {
  #young = new Map<Key, Value>();
  #old = new Map<Key, Value>();
  #weight = 0;
  readonly #limit: number;
  readonly #bytes: number;

  constructor(limit: number, bytes: number = Number.POSITIVE_INFINITY) {
    this.#limit = limit;
    this.#bytes = bytes;
  }

  get(key: Key): Value | undefined {
    return this.#young.get(key) ?? this.#old.get(key);
  }

  /** `bytes`: how much the entry takes, which is not remembered where it is more than half of what fits. */
  set(key: Key, value: Value, bytes = 0): void {
    if (bytes > this.#bytes / 2) {
      this.#young.delete(key);
      this.#old.delete(key);
      return;
    }
    if (this.#weight + bytes > this.#bytes / 2) this.#turn();
    this.#young.set(key, value);
    this.#weight += bytes;
    if (this.#young.size >= this.#limit) this.#turn();
  }

  #turn(): void {
    this.#old = this.#young;
    this.#young = new Map();
    this.#weight = 0;
  }
}
