/** Counts how many shared things each owner holds. The owner with the most must make room, so no owner can displace the others. */
export class Shares {
  readonly #counts = new Map<string, number>();
  readonly #most: number;

  /** @param owners - The owner of each held thing, one entry per thing. */
  constructor(owners: Iterable<string>) {
    for (const owner of owners) this.#counts.set(owner, (this.#counts.get(owner) ?? 0) + 1);
    this.#most = Math.max(...this.#counts.values());
  }

  /** Whether no other owner holds more. */
  isLargest(owner: string): boolean {
    return this.#counts.get(owner) === this.#most;
  }
}
