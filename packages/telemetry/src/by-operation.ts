import type { OperationName } from "@parley/a2a/internal/protocol/index";

/** Maximum cached values. There are eleven operations and few versions. */
const maxKept = 50;

interface Kept<T> {
  readonly operation: OperationName;
  readonly version: string;
  readonly made: T;
}

/** Caches a value for each operation and version. Searches a list, because building a map key costs a microsecond per message. */
export class ByOperation<T> {
  readonly #make: (operation: OperationName, version: string) => T;
  #all: Kept<T>[] = [];

  constructor(make: (operation: OperationName, version: string) => T) {
    this.#make = make;
  }

  of(operation: OperationName, version: string): T {
    for (const each of this.#all) if (each.operation === operation && each.version === version) return each.made;
    const made = this.#make(operation, version);
    if (this.#all.length >= maxKept) this.#all = [];
    this.#all.push({ operation, version, made });
    return made;
  }
}
