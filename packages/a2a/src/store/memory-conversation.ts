import { utf8Length } from "../base/index.ts";
import type { Message } from "../model/index.ts";
import { messagesOf } from "./history.ts";
import { inOrder, pickNewest, type ChunkPlace, type Chunks } from "./conversation.ts";
import type { StoredContext, StoredMessage, StoredTask } from "./memory-rows.ts";
import { defaultPageBytes, type StoredConversation, type ConversationOptions } from "./port.ts";

/** What was said last in a context; `own`: the task of `before`. */
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
    .map(({ event }) => messagesOf(event).map((json) => ({ time: event.time, message: JSON.parse(json) as Message })));
  return inOrder(picked, said, limit);
}

/** Of a task that was compacted, each artifact is one record, where it began. */
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
