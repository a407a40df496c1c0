/** The limits of a map. */
export interface MapBounds<Value> {
  /** Maximum bytes of all values and keys, as `bytesOf` counts them. */
  readonly bytes: number;
  /** Keeps at least this many of the newest entries, if `bytes` allows it, and at most twice as many. Default: only `bytes` counts. */
  readonly entries?: number;
  /** The bytes of a value and its key. The result must not change much while the value is in the map. */
  readonly bytesOf: (key: string, value: Value) => number;
}

/**
 * A map that drops its oldest entries to stay within limits, half of the map at a time: a `Map` whose oldest entries are deleted one by
 * one must skip their empty slots at each search for the next oldest (docs/decisions/hot-path.md).
 */
export class BoundedMap<Value> {
  /** Maximum bytes of the young entries, and so of the old ones. */
  readonly #halfBytes: number;
  /** Maximum entries of the young map. */
  readonly #halfEntries: number;
  readonly #bytesOf: (key: string, value: Value) => number;
  #young = new Map<string, Value>();
  #old = new Map<string, Value>();
  /** Bytes of the young entries. */
  #bytes = 0;

  /** An empty map. */
  constructor({ bytes, entries = Infinity, bytesOf }: MapBounds<Value>) {
    this.#halfBytes = bytes / 2;
    this.#halfEntries = entries;
    this.#bytesOf = bytesOf;
  }

  /** The value of a key. `undefined` if it was never set or was dropped. */
  get(key: string): Value | undefined {
    return this.#young.get(key) ?? this.#old.get(key);
  }

  /** Sets a value. A value of more than half of the maximum bytes only removes the old value of the key. */
  set(key: string, value: Value): void {
    const before = this.#young.get(key);
    if (before === value) return;
    const bytes = this.#bytesOf(key, value);
    if (before !== undefined) this.#bytes -= this.#bytesOf(key, before);
    if (bytes > this.#halfBytes) {
      this.#young.delete(key);
      this.#old.delete(key);
      return;
    }
    if (this.#bytes + bytes > this.#halfBytes) this.#turn();
    this.#young.set(key, value);
    this.#bytes += bytes;
    if (this.#young.size >= this.#halfEntries) this.#turn();
  }

  /** Drops the keys that start with this text. */
  drop(prefix: string): void {
    // Their bytes still count until the next `#turn()`.
    for (const map of [this.#young, this.#old]) {
      for (const key of map.keys()) if (key.startsWith(prefix)) map.delete(key);
    }
  }

  /** Drops everything. */
  clear(): void {
    this.#turn();
    this.#turn();
  }

  #turn(): void {
    this.#old = this.#young;
    this.#young = new Map();
    this.#bytes = 0;
  }
}

/** Approximate overhead of an entry in bytes, in addition to its text. */
const aroundEntry = 200;

/** Maximum memory of an entry with these texts, in bytes: two for each character. */
export function memoryOf(...texts: readonly (string | undefined)[]): number {
  return texts.reduce((sum, text = "") => sum + 2 * text.length, aroundEntry);
}
