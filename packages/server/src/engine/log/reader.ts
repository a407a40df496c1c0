import type { Clock } from "@parley/a2a/internal/base/index";
import { elementsOf, insideOf, membersOf, unescaped } from "@parley/a2a/internal/base/json-text";
import {
  A2AError,
  countsInGeneration,
  isInterrupted,
  isTerminal,
  type LogRecord,
} from "@parley/a2a/internal/model/index";
import type { Span, TaskTimeline } from "@parley/a2a/internal/protocol/index";
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
import { callJson } from "./records.ts";

/** Maximum records of a page. Pages are small, because many readers may hold a page without reading on. */
export const pageSize = 256;
/** Maximum bytes of JSON of a page. A larger record gets a page to itself, and reserves memory (`Position.room`). */
const pageBytes = roomless;

export interface Position {
  readonly store: Store;
  readonly liveLogs: LiveLogs;
  readonly scope: Scope;
  readonly task: TaskKey;
  readonly contextId: string;
  /** `seq` of the record before the first one to read. */
  readonly after: number;
  /** Reserves memory for records that are larger than a page, if the server limits the memory of its readers. */
  readonly room?: Room;
}

/**
 * Reads the log of a task from a position: first the stored records, then new records as they arrive. Used by streams and waiting
 * sends. This is a class, because a waiting generator cannot be closed.
 */
export class LogReader {
  readonly #from: Position;
  #after: number;
  readonly #live: LiveLog;
  #seen: number;
  #waiter: Waiter | undefined;
  #closed = false;
  readonly #moves: boolean;

  /** `moves`: whether the reader can continue in another process. */
  constructor(from: Position, moves = false) {
    this.#from = from;
    this.#moves = moves;
    this.#after = from.after;
    this.#live = from.liveLogs.acquire(from.task, from.contextId);
    this.#seen = this.#live.notifications;
  }

  /** Resolves to the next records, at least one; `undefined` once closed. */
  async read(): Promise<readonly LogRecord[] | undefined> {
    while (!this.#closed) {
      const polled = this.poll();
      const records = polled instanceof Promise ? await polled : polled;
      if (records.length > 0) return records;
      await this.wait();
    }
    return undefined;
  }

  /** The next records; empty if none are available yet. A promise only if the store is read. */
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

  /** Resolves when there may be more records than at the last `poll`, or when the reader is closed. */
  wait(): Promise<void> {
    if (this.#closed) return Promise.resolve();
    return new Promise<void>((resolve, reject) => {
      this.#waiter = { resolve, reject, moves: this.#moves };
      this.#live.subscribe(this.#seen, this.#waiter);
    });
  }

  /** Stops reading. A `read` that waits resolves to `undefined`. */
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
  // The log was compacted, so reading cannot continue at this position. A new subscription starts with the Task.
  if (after + 1 < page.head.firstSeq)
    throw new A2AError("Unavailable", "Subscribe to the task again: this position was compacted");
  return page.records;
}

/**
 * Whether a record answers the message at `input`, so that a send which waits for the answer returns (A2A 1.0 §3.2.2). A
 * terminal state answers every message. An interrupted state answers only the message of the same turn, because an earlier turn
 * may ask its user something while the message waits.
 */
export async function answers(
  record: LogRecord,
  input: number,
  { liveLogs, store, scope, task }: Position,
): Promise<boolean> {
  if (record.state === undefined) return false;
  if (isTerminal(record.state)) return true;
  if (!isInterrupted(record.state)) return false;
  const { run } = liveLogs.find(task.taskId)?.head ?? (await store.head(scope, task.taskId)) ?? {};
  // A task without a run has no unanswered messages.
  if (run === undefined) return true;
  if (run.turn === record.turn) return run.input >= input;
  // A later message already has a turn, so this message was answered. A late reader still gets the answer.
  return run.input > input && record.turn >= run.turn - (await turnsAfter(store, scope, task, input, run.input));
}

/** The number of turns that the messages after `message`, up to and including `later`, have started. */
async function turnsAfter(
  store: Store,
  scope: Scope,
  { taskId }: TaskKey,
  message: number,
  later: number,
): Promise<number> {
  let turns = 0;
  for (let after = message; ;) {
    const page = await store.read(scope, taskId, { after, limit: pageSize, kinds: ["message"] });
    const messages = page?.records.filter(({ seq }) => seq <= later) ?? [];
    turns += messages.filter((each) => !isAnswer(each)).length;
    const last = messages.at(-1);
    if (last === undefined || last.seq === later) return turns;
    after = last.seq;
  }
}

/** Resolves once the message at `input` is answered: its task is interrupted or terminal. Rejects when `signal` fires. */
export async function waitForAnswer(from: Position, input: number, signal: AbortSignal | undefined): Promise<void> {
  const answered = await readUntil(from, signal, (record) => answers(record, input, from));
  if (!answered) throw new A2AError("Aborted", "The client disconnected");
}

/** Reads records until `last` returns true. `false`: `signal` fired or `timeout` milliseconds passed first. */
async function readUntil(
  from: Position,
  signal: AbortSignal | undefined,
  last: (record: LogRecord) => boolean | Promise<boolean>,
  limit?: { readonly clock: Clock; readonly timeout: number },
): Promise<boolean> {
  if (signal?.aborted === true) return false;
  const reader = new LogReader(from);
  const close = (): void => reader.close();
  const clearTimer = limit?.clock.after(limit.timeout, close);
  signal?.addEventListener("abort", close, { once: true });
  try {
    for (;;) {
      const records = await reader.read();
      if (records === undefined) return false;
      for (const record of records) if (await last(record)) return true;
    }
  } finally {
    clearTimer?.();
    signal?.removeEventListener("abort", close);
    reader.close();
  }
}

interface NextMessage {
  readonly head: TaskHead;
  /** The oldest message that waits for a turn, if any. */
  readonly message: LogRecord | undefined;
  readonly more: boolean;
}

/** Reads the next message after `seq`, the message of the last turn. Answers to authorization requests need no turn. */
export async function readNextMessage(store: Pick<Store, "read">, task: TaskKey, seq: number): Promise<NextMessage> {
  const page = await store.read(task, task.taskId, { after: seq, limit: 2, kinds: ["message"] });
  if (page === undefined) throw new Error(`Task ${task.taskId} is gone from the store`);
  const [message, second] = page.records;
  if (message !== undefined && isAnswer(message)) return readNextMessage(store, task, message.seq);
  if (message === undefined) return { head: page.head, message, more: false };
  const more = second !== undefined || (await hasMessageAfter(store, task, message, page));
  return { head: page.head, message, more };
}

function isAnswer({ call }: LogRecord): boolean {
  return call !== undefined && callJson.read(call).answers !== undefined;
}

async function hasMessageAfter(
  store: Pick<Store, "read">,
  task: TaskKey,
  { seq }: LogRecord,
  { head }: LogPage,
): Promise<boolean> {
  if (head.seq === seq || head.bytes <= defaultPageBytes) return false;
  const page = await store.read(task, task.taskId, { after: seq, limit: 1, kinds: ["message"] });
  return page !== undefined && page.records.length > 0;
}

/**
 * Resolves once a task is past a generation or terminal, or `timeout` milliseconds have passed. Generations count the visible
 * changes of a task: its creation, statuses and artifacts, but not the user's messages (1.1 draft, §3.2.7).
 */
export async function waitForGeneration(
  from: Position,
  head: TaskHead,
  beyond: number,
  timeout: number,
  clock: Clock,
  signal: AbortSignal | undefined,
): Promise<void> {
  let { generation } = head;
  if (generation > beyond || isTerminal(head.state)) return;
  const isLast = ({ kind, state }: LogRecord): boolean => {
    if (countsInGeneration(kind)) generation += 1;
    return generation > beyond || (state !== undefined && isTerminal(state));
  };
  await readUntil(from, signal, isLast, { clock, timeout });
}

/** The generation of a task at a `seq` of its log: the head's generation minus the counted records after `seq`. */
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

/** Maximum records and bytes of one page. */
const page = { limit: 256, bytes: 256 << 10 };

/**
 * The timeline of a task (1.1 draft, §3.2.8), and the generations in which its artifacts began and ended, up to the head.
 * `undefined` if the log no longer has its first record, or the entries would exceed `bytes`, because clients would mistake a
 * partial timeline for the complete one.
 *
 * @param room - Reserves memory before a large page is read.
 */
export async function readTimeline(
  store: Pick<Store, "read">,
  { task, seq, firstSeq }: Pick<TaskHead, "task" | "seq" | "firstSeq">,
  bytes: number,
  room?: Room,
): Promise<Omit<TaskTimeline, "payload"> | undefined> {
  if (firstSeq > 1) return undefined;
  const timeline = new Timeline(bytes);
  for (let after = 0; after < seq;) {
    const found = await store.read(task, task.taskId, { ...page, after, ...(room !== undefined && { room }) });
    const records = found?.records.filter((record) => record.seq <= seq) ?? [];
    const last = records.at(-1);
    if (last === undefined || !records.every((record) => timeline.add(record))) return undefined;
    after = last.seq;
  }
  return timeline;
}

class Timeline implements Omit<TaskTimeline, "payload"> {
  readonly entries: string[] = [];
  readonly artifacts: Map<string, Span> = new Map<string, Span>();
  #left: number;
  #generation = 0;

  constructor(bytes: number) {
    this.#left = bytes;
  }

  add(record: LogRecord): boolean {
    if (countsInGeneration(record.kind)) this.#generation++;
    switch (record.kind) {
      case "task":
        return elementsOf(membersOf(record.json).get("history") ?? "[]").every((text) => this.#enter("message", text));
      case "message":
        return this.#enter("message", record.json);
      case "statusUpdate":
        return this.#enter("status", membersOf(record.json).get("status") ?? "{}");
      case "artifactUpdate":
        return this.#mark(membersOf(record.json));
    }
  }

  #enter(member: "message" | "status", json: string): boolean {
    this.entries.push(`{"${member}":${json}}`);
    return (this.#left -= 2 * json.length) >= 0;
  }

  #mark(event: ReadonlyMap<string, string>): boolean {
    const id = unescaped(insideOf(membersOf(event.get("artifact") ?? "{}").get("artifactId") ?? '""'));
    const start = this.artifacts.get(id)?.start ?? this.#generation;
    const over = event.get("lastChunk") === "true";
    this.artifacts.set(id, over ? { start, end: this.#generation } : { start });
    return (this.#left -= 2 * id.length + 64) >= 0;
  }
}
