/** How much a map may hold. */
export interface MapBounds<Value> {
  /** All values and their keys together, in bytes, as `bytesOf` counts them. */
  readonly bytes: number;
  /** How many of the newest are held in any case that `bytes` allows; twice as many at most. Default: no bound but `bytes`. */
  readonly entries?: number;
  /** What a value and its key take. It has to give about the same again for as long as the value is held. */
  readonly bytesOf: (key: string, value: Value) => number;
}

/**
 * A map that forgets what was put in first, so that it stays within its bounds. Entries go half of the map at a time and not
 * one by one: a `Map` whose oldest entries are deleted searches the holes that they leave (docs/decisions/hot-path.md).
 */
export class BoundedMap<Value> {
  /** The most that the young ones may take, and so the old ones. */
  readonly #halfBytes: number;
  readonly #mostEntries: number;
  readonly #bytesOf: (key: string, value: Value) => number;
  #young = new Map<string, Value>();
  #old = new Map<string, Value>();
  /** Of the young ones. */
  #bytes = 0;

  /** An empty map. */
  constructor({ bytes, entries = Infinity, bytesOf }: MapBounds<Value>) {
    this.#halfBytes = bytes / 2;
    this.#mostEntries = entries;
    this.#bytesOf = bytesOf;
  }

  /** The value of a key; `undefined` where there is none, or where it was dropped. */
  get(key: string): Value | undefined {
    return this.#young.get(key) ?? this.#old.get(key);
  }

  /** A value that takes more than half of the bytes is not kept, and what was kept before under its key is forgotten. */
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
    if (this.#young.size >= this.#mostEntries) this.#turn();
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

/** What an entry takes beside its text: its place in a map, and the objects around it. About. */
const aroundEntry = 200;

/** Bytes of memory that an entry made of texts takes at most: two for each character. */
export function memoryOf(...texts: readonly (string | undefined)[]): number {
  return texts.reduce((sum, text = "") => sum + 2 * text.length, aroundEntry);
}
