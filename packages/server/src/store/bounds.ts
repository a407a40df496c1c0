import { A2AError } from "@parley/a2a/internal/model/index";
import { defaultPageBytes, roomless, type ListQuery, type Room } from "./queries.ts";

/* How much a store reads and returns at once, and the errors for larger data. */

/** Limits for data that a store returns or builds at once, in bytes. */
export interface StoreBounds {
  /** Largest task that is returned, with the requested history and artifacts. */
  readonly text: number;
  /** Tasks with larger logs are not compacted, because compaction holds a whole task in memory. */
  readonly compaction: number;
}

/** 256 MiB is half of the longest string in V8. 32 MiB is the largest task that the engine allows by default. */
export const defaultStoreBounds: StoreBounds = { text: 256 << 20, compaction: 32 << 20 };

/** The error for a task that takes more than `StoreBounds.text`. A retry fails, too, but a query for less may succeed. */
export function tooLarge(taskId: string, bytes: number, most: number): A2AError {
  return new A2AError(
    "UnsupportedOperation",
    `Task ${taskId} is too large to return: about ${mebibytes(bytes)} MiB, at most ${mebibytes(most)}; request it without artifacts, or with less history`,
  );
}

function mebibytes(bytes: number): number {
  return Math.ceil(bytes / (1 << 20));
}

/** The error of a store that cannot work now. The message may reach a client, but the cause is only logged. */
export function unavailable(sentence: string, cause?: unknown): A2AError {
  return new A2AError("Unavailable", sentence, { cause });
}

/** Counts the bytes of a page. The first item always fits, so that paging ends. */
export class PageBudget {
  #left: number;
  #empty = true;

  /** `bytes`: the maximum of a page. */
  constructor(bytes: number) {
    this.#left = bytes;
  }

  /** The remaining bytes. */
  get left(): number {
    return this.#left;
  }

  /** Whether an item of this many bytes fits, without counting it. */
  fits(bytes: number): boolean {
    return this.#empty || bytes <= this.#left;
  }

  /** Whether an item of this many bytes fits. If so, it is counted. */
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

/** Thrown before a read that takes more bytes than were reserved. */
export class NeedsRoom extends Error {
  /** The bytes that are needed. */
  readonly bytes: number;

  /** `bytes`: how many bytes are needed. */
  constructor(bytes: number) {
    super(`Room for ${bytes} bytes is needed`);
    this.bytes = bytes;
  }
}

/** Counts the bytes of a page while the page is read. Beyond `most` bytes, throws `NeedsRoom` with the maximum bytes of the page. */
export class PageRoom {
  readonly #logs: readonly number[];
  readonly #bytes: number;
  readonly #most: number;
  #taken = 0;

  /** `logs`: the log sizes of the page's tasks, in bytes. */
  constructor(logs: readonly number[], { bytes = defaultPageBytes }: ListQuery, most: number) {
    this.#logs = logs;
    this.#bytes = bytes;
    this.#most = most;
  }

  /** Whether there is a limit, so that bytes have to be counted. */
  get counts(): boolean {
    return this.#most < Infinity;
  }

  /** Counts bytes that were read. Throws `NeedsRoom` if the page may need more than `most` bytes. */
  take(bytes: number): void {
    this.#taken += bytes;
    if (this.#taken <= this.#most) return;
    const all = this.#logs.reduce((sum, each) => sum + each, 0);
    // A task that is larger than a page gets a page to itself.
    throw new NeedsRoom(Math.max(this.#taken, Math.min(all, Math.max(this.#bytes, ...this.#logs))));
  }
}

/** Calls `read`. If `read` throws `NeedsRoom`, reserves the bytes and repeats the call, perhaps several times, because the data may grow. */
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
