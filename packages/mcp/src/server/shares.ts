/** How much each owner holds of something that all share. Who holds the most makes room, so nobody can take what others hold. */
export class Shares {
  readonly #counts = new Map<string, number>();
  readonly #most: number;

  /** @param owners - The owner of each thing. */
  constructor(owners: Iterable<string>) {
    for (const owner of owners) this.#counts.set(owner, (this.#counts.get(owner) ?? 0) + 1);
    this.#most = Math.max(...this.#counts.values());
  }

  /** Whether nobody holds more. */
  isLargest(owner: string): boolean {
    return this.#counts.get(owner) === this.#most;
  }
}
