/**
 * A map that forgets what was put in first: it holds the newest `limit` entries, and up to as many older ones, and all of
 * them together hold `bytes` at most. Two generations and no queue, since a `Map` whose oldest entries are deleted one by one
 * searches its holes for the next.
 */
export class BoundedMap<Key, Value extends { readonly bytes: number }> {
  #young = new Map<Key, Value>();
  #old = new Map<Key, Value>();
  /** Bytes of the young ones. */
  #bytes = 0;
  readonly #limit: number;
  readonly #mostBytes: number;

  constructor(limit: number, bytes: number) {
    this.#limit = limit;
    this.#mostBytes = bytes;
  }

  get(key: Key): Value | undefined {
    return this.#young.get(key) ?? this.#old.get(key);
  }

  /** A value of more than half of `bytes` is not kept, and what was kept before under its key is forgotten. */
  set(key: Key, value: Value): void {
    const { bytes } = value;
    if (bytes > this.#mostBytes / 2) {
      this.#bytes -= this.#young.get(key)?.bytes ?? 0;
      this.#young.delete(key);
      this.#old.delete(key);
      return;
    }
    const before = this.#young.get(key)?.bytes ?? 0;
    if (this.#bytes - before + bytes > this.#mostBytes / 2) this.#turn();
    else this.#bytes -= before;
    this.#young.set(key, value);
    this.#bytes += bytes;
    if (this.#young.size >= this.#limit) this.#turn();
  }

  #turn(): void {
    this.#old = this.#young;
    this.#young = new Map();
    this.#bytes = 0;
  }
}
