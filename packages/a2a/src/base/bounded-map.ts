/** How much a map may hold. */
export interface MapBounds<Value> {
  /** All values and their keys together, in bytes, as `bytesOf` counts them. */
  readonly bytes: number;
  /** How many of the newest entries are kept at least, as far as `bytes` allows. Twice as many are kept at most. Default: only `bytes` counts. */
  readonly entries?: number;
  /** How many bytes a value and its key take. The result must stay about the same while the value is kept. */
  readonly bytesOf: (key: string, value: Value) => number;
}

/**
 * A map that drops its oldest entries to stay within bounds, half of the map at a time: deleting the oldest one by one makes a `Map` search
 * its holes (docs/decisions/hot-path.md).
 */
export class BoundedMap<Value> {
  /** How many bytes the young entries may take, and so the old ones. */
  readonly #halfBytes: number;
  /** How many entries the young map may have. */
  readonly #halfEntries: number;
  readonly #bytesOf: (key: string, value: Value) => number;
  #young = new Map<string, Value>();
  #old = new Map<string, Value>();
  /** What the young entries take. */
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

  /** Sets a value. One that takes more than half of the bytes is not kept, and neither is the value that the key had. */
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

  /** Drops the keys that begin with this text. */
  drop(prefix: string): void {
    // What they took counts until the next turn.
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

/** Bytes of memory that an entry made of texts takes at most: two for each character. */
export function memoryOf(...texts: readonly (string | undefined)[]): number {
  return texts.reduce((sum, text = "") => sum + 2 * text.length, aroundEntry);
}
