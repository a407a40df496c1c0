import type { Clock } from "../../base/index.ts";
import { A2AError, countsInGeneration, isInterrupted, isTerminal, type LogRecord } from "../../model/index.ts";
import {
  defaultPageBytes,
  roomless,
  type LogPage,
  type Room,
  type Scope,
  type Store,
  type TaskHead,
  type TaskKey,
} from "../../store/index.ts";
import type { LiveLog, LiveLogs, Waiter } from "./live-log.ts";

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

/**
 * Whether a record answers the message at `input`, so that a send which waits for it returns (A2A 1.0 §3.2.2). A terminal
 * state always does. An interrupted one only when it belongs to the turn of that message: the turn before it may ask
 * something while the message waits for its own.
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

/** Waits until the message at `input` has been answered: the task waits for its user, or is over. */
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

/** What the log of a task has after the message of the last turn. */
interface NextMessage {
  readonly head: TaskHead;
  /** The oldest message that waits for a turn, if one does. */
  readonly message: LogRecord | undefined;
  /** Whether another one waits after it. */
  readonly more: boolean;
}

/** Reads the log after `seq`, the message of the last turn. */
export async function readNextMessage(store: Store, task: TaskKey, seq: number): Promise<NextMessage> {
  const page = await store.read(task, task.taskId, { after: seq, limit: 2, kinds: ["message"] });
  if (page === undefined) throw new Error(`Task ${task.taskId} is gone from the store`);
  const [message, second] = page.records;
  if (message === undefined) return { head: page.head, message, more: false };
  const more = second !== undefined || (await hasMessageAfter(store, task, message, page));
  return { head: page.head, message, more };
}

/** Of two long messages a page has the first alone. */
async function hasMessageAfter(store: Store, task: TaskKey, { seq }: LogRecord, { head }: LogPage): Promise<boolean> {
  if (head.seq === seq || head.bytes <= defaultPageBytes) return false;
  const page = await store.read(task, task.taskId, { after: seq, limit: 1, kinds: ["message"] });
  return page !== undefined && page.records.length > 0;
}

/*
 * Generations count the changes of a task that its readers see: its creation, statuses and artifacts, but no messages of
 * the user (1.1 draft, §3.2.7).
 */

/**
 * Waits until a task is beyond a generation, is over, or `timeout` milliseconds have passed. Of a task that is over nothing
 * more can come.
 */
export async function waitForGeneration(
  from: Position,
  head: TaskHead,
  beyond: number,
  timeout: number,
  clock: Clock,
  signal: AbortSignal | undefined,
): Promise<void> {
  let { generation, state } = head;
  if (generation > beyond || isTerminal(state) || signal?.aborted === true) return;
  const reader = new LogReader(from);
  const close = (): void => reader.close();
  const clearTimer = clock.after(timeout, close);
  signal?.addEventListener("abort", close, { once: true });
  try {
    while (generation <= beyond && !isTerminal(state)) {
      const records = await reader.read();
      if (records === undefined) return;
      for (const record of records) {
        if (countsInGeneration(record.kind)) generation += 1;
        state = record.state ?? state;
      }
    }
  } finally {
    clearTimer();
    signal?.removeEventListener("abort", close);
    reader.close();
  }
}

/** The generation of a task at a `seq` of its log: that of its head, less the records since that count. */
export async function generationAt({ store, scope, task: { taskId } }: Position, seq: number): Promise<number> {
  let messages = 0;
  for (let after = seq; ;) {
    const page = await store.read(scope, taskId, { after, limit: pageSize, kinds: ["message"] });
    if (page === undefined) throw new A2AError("TaskNotFound", undefined, { metadata: { taskId } });
    messages += page.records.length;
    const last = page.records.at(-1);
    if (last === undefined || last.seq === page.head.seq) {
      return page.head.generation - (page.head.seq - seq - messages);
    }
    after = last.seq;
  }
}
