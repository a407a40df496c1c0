import { A2AError, isInterrupted, isTerminal, type LogRecord } from "../../model/index.ts";
import { roomless, type Room, type Scope, type Store, type TaskKey } from "../../store/index.ts";
import type { LiveLog, Waiter } from "./live-log.ts";
import type { LiveLogs } from "./live-logs.ts";

/** Records of one reading: enough to keep a fast reader busy, little enough to hold many readers that do not read. */
export const pageSize = 256;
/** The same in bytes of JSON; a record that is larger is read alone, and needs room. */
const readBytes = roomless;

/** Which log to read, for whom, and from where. */
export interface Position {
  readonly store: Store;
  readonly liveLogs: LiveLogs;
  readonly scope: Scope;
  readonly task: TaskKey;
  readonly contextId: string;
  /** Begin after this `seq`. */
  readonly after: number;
  /** Asked before records are given that are larger than a page, where somebody counts what readers hold. */
  readonly room?: Room;
}

/**
 * The log of a task from a position on, for ever: first what is stored, then what comes (D4). Everything that waits for
 * a task, a stream or a send, has one of these. A class and not a generator, since a generator that waits cannot be
 * told to let go.
 */
export class LogReader {
  readonly #from: Position;
  #after: number;
  #live: LiveLog | undefined;
  /** Notifications of the live log at the last read. */
  #version = 0;
  #waiting: Waiter | undefined;
  #closed = false;

  constructor(from: Position) {
    this.#from = from;
    this.#after = from.after;
  }

  /** What has gathered, at least one record; waits when there is nothing. `undefined` once closed. */
  async read(): Promise<readonly LogRecord[] | undefined> {
    while (!this.#closed) {
      const looked = this.look();
      const records = looked instanceof Promise ? await looked : looked;
      if (records.length > 0) return records;
      await this.wait();
    }
    return undefined;
  }

  /** What has gathered; empty when there is nothing, and once closed. Without a promise where it is at hand. */
  look(): readonly LogRecord[] | Promise<readonly LogRecord[]> {
    if (this.#closed) return [];
    const live = (this.#live ??= this.#from.liveLogs.acquire(this.#from.task, this.#from.contextId));
    this.#version = live.notifications;
    const records = live.after(this.#after, readBytes);
    if (records === undefined) return this.#page();
    const { room } = this.#from;
    const [first] = records;
    if (room === undefined || first === undefined || first.json.length <= readBytes) return this.#pass(records);
    return this.#large(room, records);
  }

  /** A record that is larger than a page is given alone. */
  async #large(room: Room, records: readonly LogRecord[]): Promise<readonly LogRecord[]> {
    await room.reserve(records.reduce((sum, { json }) => sum + json.length, 0));
    return this.#closed ? [] : this.#pass(records);
  }

  async #page(): Promise<readonly LogRecord[]> {
    const records = this.#pass(await readPage(this.#from, this.#after));
    // Closed while the store was read.
    return this.#closed ? [] : records;
  }

  #pass(records: readonly LogRecord[]): readonly LogRecord[] {
    this.#after = records.at(-1)?.seq ?? this.#after;
    return records;
  }

  /** Until something came since the last look, or the reader is closed. */
  wait(): Promise<void> {
    const live = this.#live;
    if (this.#closed || live === undefined) return Promise.resolve();
    return new Promise<void>((resolve, reject) => {
      this.#waiting = { resolve, reject };
      live.subscribe(this.#version, this.#waiting);
    });
  }

  /** Lets go of everything; a `read` that waits gives `undefined`. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    if (this.#live === undefined) return;
    if (this.#waiting !== undefined) {
      this.#live.unsubscribe(this.#waiting);
      this.#waiting.resolve();
    }
    this.#from.liveLogs.release(this.#live);
  }
}

async function readPage(
  { store, scope, task: { taskId }, room }: Position,
  after: number,
): Promise<readonly LogRecord[]> {
  const options = { after, limit: pageSize, bytes: readBytes };
  const page = await store.read(scope, taskId, room === undefined ? options : { ...options, room });
  if (page === undefined) throw new A2AError("TaskNotFound", undefined, { metadata: { taskId } });
  // What was compacted meanwhile cannot be read on from here; whoever asks again gets the Task first.
  if (after + 1 < page.head.firstSeq) throw new A2AError("Unavailable", "This stream must be opened anew");
  return page.records;
}

/**
 * Whether a send that waits for the answer to the message at `input` may stop at this record (A2A 1.0 §3.2.2). A terminal
 * state always ends the wait. An interrupted one only when it belongs to the turn that answers the message: the turn
 * before it may well ask something while the message is waiting for its own.
 */
export async function answers(
  record: LogRecord,
  input: number,
  { liveLogs, store, scope, task }: Position,
): Promise<boolean> {
  if (record.state === undefined) return false;
  if (isTerminal(record.state)) return true;
  if (!isInterrupted(record.state)) return false;
  const head = liveLogs.find(task.taskId)?.head ?? (await store.head(scope, task.taskId));
  // No run: every message had its turn, and the task waits for the next one.
  return head?.run === undefined || (head.run.input >= input && head.run.turn === record.turn);
}

/** Waits until the message at `input` has been answered: the task stands still for it, or is over. */
export async function waitForAnswer(from: Position, input: number, signal: AbortSignal | undefined): Promise<void> {
  const reader = new LogReader(from);
  const close = (): void => reader.close();
  signal?.addEventListener("abort", close, { once: true });
  try {
    for (;;) {
      if (signal?.aborted === true) throw new A2AError("Aborted", "The caller is gone");
      const records = (await reader.read()) ?? [];
      for (const record of records) if (await answers(record, input, from)) return;
    }
  } finally {
    signal?.removeEventListener("abort", close);
    reader.close();
  }
}
