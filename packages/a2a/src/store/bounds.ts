import { A2AError } from "../model/index.ts";
import { defaultPageBytes, roomless, type ListQuery, type Room } from "./port.ts";

/** How much a store reads and returns at once, and the errors of what cannot be returned. */

/** What a store gives or makes at once, in bytes. */
export interface StoreBounds {
  /** Of one task, as it is asked for: what is more is refused. */
  readonly text: number;
  /** Tasks with larger logs are not compacted: compaction holds a whole task in memory, beside whatever else goes on. */
  readonly compaction: number;
}

/** 256 MiB are half of the longest string that V8 can hold, and 32 MiB what the engine lets a task have by default. */
export const defaultStoreBounds: StoreBounds = { text: 256 << 20, compaction: 32 << 20 };

/** Of a task that takes more than `StoreBounds.text` as it was asked for. Asking again gives the same answer; asking for less may help. */
export function tooLarge(taskId: string, bytes: number, most: number): A2AError {
  return new A2AError(
    "UnsupportedOperation",
    `Task ${taskId} is too large to be given as it was asked for: about ${mebibytes(bytes)} MiB, at most ${mebibytes(most)} are possible. Ask without its artifacts, or for less history`,
  );
}

function mebibytes(bytes: number): number {
  return Math.ceil(bytes / (1 << 20));
}

/** The error of a store that cannot do its work now. The message may reach a client, the cause is only logged. */
export function unavailable(sentence: string, cause?: unknown): A2AError {
  return new A2AError("Unavailable", sentence, { cause });
}

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
