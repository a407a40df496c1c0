import type { OperationName } from "@parley/a2a/internal/protocol/index";

/** How many are kept. There are eleven operations, and few versions. */
const maxKept = 50;

interface Kept<T> {
  readonly operation: OperationName;
  readonly version: string;
  readonly made: T;
}

/** What is made once for an operation and a version. It looks through a list: to write a key costs a message a microsecond. */
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
