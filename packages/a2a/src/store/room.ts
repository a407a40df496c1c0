import { defaultPageBytes, roomless, type ListQuery, type Room } from "./port.ts";

/** Thrown before something is read that takes more than was allowed. */
export class NeedsRoom extends Error {
  /** How many bytes are needed. */
  readonly bytes: number;

  /** `bytes`: how many bytes are needed. */
  constructor(bytes: number) {
    super(`Room for ${bytes} bytes is needed`);
    this.bytes = bytes;
  }
}

/** Counts what a page takes while it is read, and throws `NeedsRoom` for all that it may take once that is more than `most`. */
export class PageRoom {
  readonly #logs: readonly number[];
  readonly #bytes: number;
  readonly #most: number;
  #taken = 0;

  /** `logs`: bytes of the logs of its tasks. */
  constructor(logs: readonly number[], { bytes = defaultPageBytes }: ListQuery, most: number) {
    this.#logs = logs;
    this.#bytes = bytes;
    this.#most = most;
  }

  /** Whether anybody wants to know. */
  get counts(): boolean {
    return this.#most < Infinity;
  }

  /**
   * Counts bytes that were read.
   *
   * @throws NeedsRoom where the page may need more than `most` bytes.
   */
  take(bytes: number): void {
    this.#taken += bytes;
    if (this.#taken <= this.#most) return;
    const all = this.#logs.reduce((sum, each) => sum + each, 0);
    // A task that is larger than a page has one of its own.
    throw new NeedsRoom(Math.max(this.#taken, Math.min(all, Math.max(this.#bytes, ...this.#logs))));
  }
}

/**
 * Reads, where `read` throws `NeedsRoom` as soon as it sees that it takes more than `most` bytes: then anew, with room for
 * them. What is read may have grown meanwhile.
 */
export async function withRoom<T>(room: Room | undefined, read: (most: number) => T | Promise<T>): Promise<T> {
  for (let most = room === undefined ? Infinity : roomless; ;) {
    try {
      return await read(most);
    } catch (thrown) {
      if (room === undefined || !(thrown instanceof NeedsRoom)) throw thrown;
      most = thrown.bytes;
      await room.reserve(most);
    }
  }
}
