/**
 * Short notes that processes on one store leave for each other, such as what one has learned of a receiver of webhooks. They are hints: a
 * store may lose them when it crashes, and a process that finds none learns by itself.
 */
export interface StoreNotes {
  /**
   * The notes under these keys that have not expired at `now`. Keys without a note are left out.
   *
   * @param keys - At most 1,000.
   */
  read(keys: readonly string[], now: number): Promise<ReadonlyMap<string, string>>;
  /**
   * Stores notes, each in place of the one before it. Deletes expired ones, so that the store holds only those that are still written.
   *
   * @param notes - At most 1,000, under different keys.
   */
  write(notes: readonly StoreNote[], now: number): Promise<void>;
}

/** A note under a key. */
export interface StoreNote {
  /** At most 128 characters of printable ASCII. It names nobody: whoever may be a person is hashed. */
  readonly key: string;
  /** At most 1,024 characters of printable ASCII. */
  readonly value: string;
  /** When it expires, in milliseconds since the Unix epoch. */
  readonly until: number;
}
