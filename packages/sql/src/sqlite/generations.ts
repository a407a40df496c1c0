/** What an entry takes beside its text: its place in a map, and the objects around it. About. */
const around = 200;

/** Bytes that so many characters take in memory at most: two each. */
export function memoryOf(...texts: readonly (string | undefined)[]): number {
  return texts.reduce((sum, text = "") => sum + 2 * text.length, around);
}

/**
 * Values by name, bounded in bytes. Those that were kept longest ago go all at once: up to twice `mostBytes` are held.
 * Nothing is deleted one by one: see `docs/decisions/hot-path.md`.
 */
export class Generations<Value> {
  readonly #mostBytes: number;
  #young = new Map<string, Value>();
  #old = new Map<string, Value>();
  #bytes = 0;

  constructor(mostBytes: number) {
    this.#mostBytes = mostBytes;
  }

  find(name: string): Value | undefined {
    return this.#young.get(name) ?? this.#old.get(name);
  }

  /** `bytes`: of the value and its name, when it comes; later ones under the same name are about as large. */
  keep(name: string, value: Value, bytes: number): void {
    const before = this.#young.size;
    this.#young.set(name, value);
    if (this.#young.size === before) return;
    this.#bytes += bytes;
    if (this.#bytes >= this.#mostBytes) this.#turn();
  }

  forget(): void {
    this.#turn();
    this.#turn();
  }

  #turn(): void {
    this.#old = this.#young;
    this.#young = new Map();
    this.#bytes = 0;
  }
}
