/** Counts what goes into a page that is bounded in bytes: its first item always does, so that every page gets somewhere. */
export class PageBudget {
  #left: number;
  #empty = true;

  /** `bytes`: the largest page in bytes. */
  constructor(bytes: number) {
    this.#left = bytes;
  }

  /** How many bytes still go in. */
  get left(): number {
    return this.#left;
  }

  /** Whether an item of this many bytes fits. It is not counted. */
  fits(bytes: number): boolean {
    return this.#empty || bytes <= this.#left;
  }

  /** Whether an item of so many bytes still goes into the page; it is then in it. */
  take(bytes: number): boolean {
    if (!this.fits(bytes)) return false;
    this.#empty = false;
    this.#left -= bytes;
    return true;
  }
}

/** The first items that fit together. */
export function fitting<Item>(items: Iterable<Item>, bytes: number, bytesOf: (item: Item) => number): Item[] {
  const budget = new PageBudget(bytes);
  const found: Item[] = [];
  for (const item of items) {
    if (!budget.take(bytesOf(item))) break;
    found.push(item);
  }
  return found;
}
