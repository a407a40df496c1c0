import { A2AError, type LogRecord } from "../../model/index.ts";
import { roomless, type Room, type Scope, type Store, type TaskKey } from "../../store/index.ts";
import type { LiveLog, Waiter } from "./live-log.ts";
import type { LiveLogs } from "./live-logs.ts";

/** Records of one page: enough to keep a fast reader busy, little enough to hold for many readers that do not read. */
export const pageSize = 256;
/** The same in bytes of JSON; a record that is larger is read alone, and needs room. */
const pageBytes = roomless;

/** Which log to read, for whom, and from where. */
export interface Position {
  readonly store: Store;
  readonly liveLogs: LiveLogs;
  readonly scope: Scope;
  readonly task: TaskKey;
  readonly contextId: string;
  /** Begin after this `seq`. */
  readonly after: number;
  /** Asked before records are given that are larger than a page, where the server counts what its readers hold. */
  readonly room?: Room;
}

/**
 * Reads the log of a task from a position on: first what is stored, then what comes. Everything that waits for a task,
 * a stream or a send, has one of these. A class and not a generator, since a generator that waits cannot be closed.
 */
export class LogReader {
  readonly #from: Position;
  #after: number;
  readonly #live: LiveLog;
  /** Notifications of the live log as of the last `poll`. */
  #seen: number;
  #waiter: Waiter | undefined;
  #closed = false;

  constructor(from: Position) {
    this.#from = from;
    this.#after = from.after;
    this.#live = from.liveLogs.acquire(from.task, from.contextId);
    this.#seen = this.#live.notifications;
  }

  /** The next records, at least one; waits until there are any. `undefined` once closed. */
  async read(): Promise<readonly LogRecord[] | undefined> {
    while (!this.#closed) {
      const polled = this.poll();
      const records = polled instanceof Promise ? await polled : polled;
      if (records.length > 0) return records;
      await this.wait();
    }
    return undefined;
  }

  /** The next records, none where there are none yet, and once closed. A promise only where the store is read. */
  poll(): readonly LogRecord[] | Promise<readonly LogRecord[]> {
    if (this.#closed) return [];
    this.#seen = this.#live.notifications;
    const records = this.#live.after(this.#after, pageBytes);
    if (records === undefined) return this.#readStore();
    const [first] = records;
    const { room } = this.#from;
    if (room === undefined || first === undefined || first.json.length <= pageBytes) return this.#advance(records);
    return this.#reserve(room, records);
  }

  /** Resolves when there may be more than at the last `poll`, or the reader is closed. */
  wait(): Promise<void> {
    if (this.#closed) return Promise.resolve();
    return new Promise<void>((resolve, reject) => {
      this.#waiter = { resolve, reject };
      this.#live.subscribe(this.#seen, this.#waiter);
    });
  }

  /** Releases everything; a `read` that waits gives `undefined`. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    if (this.#waiter !== undefined) {
      this.#live.unsubscribe(this.#waiter);
      this.#waiter.resolve();
    }
    this.#from.liveLogs.release(this.#live);
  }

  async #reserve(room: Room, records: readonly LogRecord[]): Promise<readonly LogRecord[]> {
    await room.reserve(records.reduce((sum, { json }) => sum + json.length, 0));
    return this.#closed ? [] : this.#advance(records);
  }

  async #readStore(): Promise<readonly LogRecord[]> {
    const records = this.#advance(await readPage(this.#from, this.#after));
    return this.#closed ? [] : records;
  }

  #advance(records: readonly LogRecord[]): readonly LogRecord[] {
    this.#after = records.at(-1)?.seq ?? this.#after;
    return records;
  }
}

async function readPage(
  { store, scope, task: { taskId }, room }: Position,
  after: number,
): Promise<readonly LogRecord[]> {
  const options = { after, limit: pageSize, bytes: pageBytes };
  const page = await store.read(scope, taskId, room === undefined ? options : { ...options, room });
  if (page === undefined) throw new A2AError("TaskNotFound", undefined, { metadata: { taskId } });
  // The log was compacted meanwhile and cannot be read on from here. Whoever subscribes again gets the Task first.
  if (after + 1 < page.head.firstSeq) throw new A2AError("Unavailable", "This stream must be opened anew");
  return page.records;
}
