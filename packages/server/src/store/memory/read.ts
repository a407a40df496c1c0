import { utf8Length } from "@parley/a2a/internal/base/index";
import type { LogRecord } from "@parley/a2a/internal/model/index";
import { assemble, messagesOf, type TaskPieces } from "../assemble.ts";
import { NeedsRoom, PageBudget, PageRoom, tooLarge, type StoreBounds } from "../bounds.ts";
import { inOrder, pickNewest, type ChunkPlace, type Chunks } from "../conversation.ts";
import {
  defaultPageBytes,
  type ConversationOptions,
  type ListedTask,
  type ListQuery,
  type LoadOptions,
  type LogPage,
  type ReadOptions,
  type StoredConversation,
} from "../port.ts";
import type { SnapshotText } from "../task-text.ts";
import { recordBytes } from "../transition.ts";
import { piecesOf, type StoredContext, type StoredMessage, type StoredTask } from "./rows.ts";
import { messageJson } from "../json.ts";

/* Reads tasks and conversations of the memory store, within the bounds of the query. */

/** The records of a task after a position. Throws `NeedsRoom` for a page of more than `most` bytes. */
export function readRecords(task: StoredTask, options: ReadOptions, most: number): LogPage {
  const { after, limit, bytes = defaultPageBytes, kinds } = options;
  const budget = task.head.bytes <= Math.min(bytes, most) ? undefined : new PageBudget(bytes);
  let sum = 0;
  const records: LogRecord[] = [];
  for (let i = Math.max(0, after - task.head.firstSeq + 1); i < task.records.length && records.length < limit; i += 1) {
    const record = task.records[i];
    if (record === undefined || kinds?.includes(record.kind) === false) continue;
    if (budget !== undefined) {
      const size = recordBytes(record);
      if (!budget.take(size)) break;
      sum += size;
    }
    records.push(record);
  }
  if (sum > most) throw new NeedsRoom(sum);
  return { records, head: task.head };
}

/** A snapshot of a task. Throws if it is larger than `bounds.text`. */
export function assembleTask(task: StoredTask, options: LoadOptions, bounds: StoreBounds): SnapshotText {
  const pieces = piecesOf(task, options.history);
  if (task.head.bytes > bounds.text) {
    const length = lengthOf(pieces, options);
    if (length > bounds.text) throw tooLarge(task.head.task.taskId, length, bounds.text);
  }
  return assemble(pieces, options);
}

/** The first tasks that fit into the page. Throws `NeedsRoom` for more than `most` bytes. */
export function assemblePage(
  found: readonly StoredTask[],
  query: ListQuery,
  bounds: StoreBounds,
  most: number,
): readonly ListedTask[] {
  const { bytes = defaultPageBytes } = query;
  const whole = found.reduce((sum, { head }) => sum + head.bytes, 0) <= bytes;
  const budget = new PageBudget(bytes);
  const held = new PageRoom(
    found.map(({ head }) => head.bytes),
    query,
    most,
  );
  const tasks: ListedTask[] = [];
  for (const task of found) {
    // A large task that cannot fit is not assembled.
    if (task.head.bytes > bytes && !budget.fits(lengthOf(piecesOf(task, query.history), query))) break;
    const listed = assembleTask(task, query, bounds);
    if (!whole && !budget.take(bytesOf(listed))) break;
    if (held.counts) held.take(bytesOf(listed));
    tasks.push(listed);
  }
  return tasks;
}

/** An upper bound of the characters of a snapshot, and a lower bound of its bytes. */
function lengthOf({ base, status, metadata, history, artifacts }: TaskPieces, options: LoadOptions): number {
  const lists = [[base, status ?? ""], metadata, history.map(({ json }) => json), options.artifacts ? artifacts : []];
  return lists.flat().reduce((sum, json) => sum + json.length, 0);
}

/** The size of a task in bytes, without joining its pieces. */
function bytesOf(task: SnapshotText): number {
  const { pieces } = task;
  return pieces === undefined ? utf8Length(task.json) : pieces.reduce((sum, piece) => sum + utf8Length(piece), 0);
}

/** The newest entries of a context. `own`: the task of `before`. */
export function newestEntries(
  context: StoredContext,
  own: StoredTask | undefined,
  { limit, bytes = defaultPageBytes, before }: ConversationOptions,
): StoredConversation["entries"] {
  const leftOut = ({ task, seq, event }: StoredMessage): boolean =>
    before !== undefined &&
    task === own &&
    (event.actor === "user" ? seq >= before.seq : (event.turn ?? 0) >= before.turn);
  const more = own === undefined ? 0 : own.messages.filter(leftOut).length;
  const messages = context.messages
    .last(limit + more)
    .filter((message) => !leftOut(message))
    .reverse()
    .slice(0, limit);

  const tasks = new Set(messages.map(({ task }) => task).filter((task) => task !== undefined));
  if (own !== undefined) tasks.add(own);
  const chunks = new Map<StoredTask, Chunks>();
  for (const task of tasks) chunks.set(task, new StoredChunks(task, task === own ? before?.turn : undefined));
  const places = messages.map((message) => ({
    place: message.place,
    time: message.event.time,
    task: message.task,
    seq: message.seq,
    get bytes() {
      return utf8Length(message.event.json);
    },
  }));

  const picked = pickNewest(places, chunks, { limit, bytes });
  const said = messages
    .slice(0, picked.messages.length)
    .map(({ event }) => messagesOf(event).map((json) => ({ time: event.time, message: messageJson.read(json) })));
  return inOrder(picked, said, limit);
}

/** The artifact records of a task, newest first. In a compacted task, each artifact is one record, at the position of its first record. */
class StoredChunks implements Chunks {
  readonly #task: StoredTask;
  readonly #before: number;
  #at: number;
  #next: (ChunkPlace & { readonly json: string }) | undefined;

  constructor(task: StoredTask, before = Infinity) {
    this.#task = task;
    this.#before = before;
    this.#at = this.#compacted ? task.artifacts.length : task.records.length;
    this.#advance();
  }

  get #compacted(): boolean {
    return this.#task.head.firstSeq > 1;
  }

  peek(): ChunkPlace | undefined {
    return this.#next;
  }

  take(): string {
    const json = this.#next?.json ?? "{}";
    this.#advance();
    return json;
  }

  #advance(): void {
    const { records, artifacts, starts } = this.#task;
    this.#next = undefined;
    while (this.#at > 0 && this.#next === undefined) {
      this.#at -= 1;
      const record = records[this.#at];
      const start = starts[this.#at];
      const json = artifacts[this.#at];
      if (this.#compacted) {
        if (start !== undefined && json !== undefined) this.#next = { ...start, json, bytes: utf8Length(json) };
      } else if (record?.kind === "artifactUpdate" && record.turn < this.#before) {
        const { seq, time } = record;
        this.#next = { seq, time, json: record.json, bytes: utf8Length(record.json) };
      }
    }
  }
}
