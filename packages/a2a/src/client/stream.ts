import type { Clock } from "../base/index.ts";
import {
  A2AError,
  isTerminal,
  type Message,
  type StreamResponse,
  type Task,
  TaskFold,
  type TaskStatus,
} from "../model/index.ts";
import type { AnyExtension, StreamItem, StreamReply } from "../protocol/index.ts";
import { pause } from "../transport/client/signals.ts";
import type { ReceivedEvent } from "./received.ts";
import type { CallOptions } from "./requests.ts";
import { refusesFinished } from "./retry.ts";
import type { readText, TextPiece } from "./text.ts";

/** The events of a task, and three ways to read them: as single events, as the task that they describe, or until a state. */

type Result<E extends AnyExtension> = IteratorResult<ReceivedEvent<E>, void>;

/** Replaces a method that a small client omits. */
export function leftOut(..._: readonly unknown[]): never {
  throw new A2AError("UnsupportedOperation");
}

const over: IteratorResult<never, void> = { done: true, value: undefined };

/**
 * The events of a task, or the only message of an agent that created no task. Read the stream once, with `for await`; leaving the loop
 * closes the connection. The stream reconnects automatically. A `task` event after the first event replaces all earlier events. The
 * stream ends as the protocol defines (A2A 1.0 §3.1.2, §3.1.6), and throws an `A2AError` in every other case.
 */
export class EventStream<E extends AnyExtension = never>
  implements AsyncIterable<ReceivedEvent<E>>, AsyncIterator<ReceivedEvent<E>, void, void>
{
  readonly #open: () => Promise<StreamReply>;
  readonly #observe: ((event: StreamResponse) => void) | undefined;
  #opened: Promise<StreamReply> | undefined;
  #batches: AsyncIterator<readonly StreamItem[]> | undefined;
  /** Events that arrived together. The events from index `#at` on are unread. */
  #batch: readonly StreamItem[] = [];
  #at = 0;
  /** The number of pending reads, and the last pending read. */
  #waiting = 0;
  #last: Promise<Result<E>> | undefined;
  readonly #readText: typeof readText | undefined;
  readonly #known: boolean;
  #seq: number | undefined;
  #status: TaskStatus | undefined;
  #over = false;

  /**
   * @param open - Sends the request.
   * @param observe - Called with each event just before the reader gets it.
   * @param read - `readText`, for `text()`. Passed by the caller, so that clients without it stay small.
   * @param known - Whether the reader already has the task's content, such as after an agent's question, so that `text()` starts with new content.
   */
  constructor(
    open: () => Promise<StreamReply>,
    observe?: (event: StreamResponse) => void,
    read?: typeof readText,
    known = false,
  ) {
    this.#open = open;
    this.#observe = observe;
    this.#readText = read;
    this.#known = known;
  }

  /**
   * Number of the latest event in the log of its task; `undefined` if the agent's card does not promise such numbers.
   * Pass it to `subscribeToTask()` as `after` to continue later.
   */
  get seq(): number | undefined {
    return this.#seq;
  }

  /** Number of events that have arrived and are unread. */
  get buffered(): number {
    return this.#batch.length - this.#at;
  }

  /** The latest status of the task. `undefined` before the first status, and for a direct reply. */
  get status(): TaskStatus | undefined {
    return this.#status;
  }

  /**
   * The text of the answer, piece by piece, instead of the events. Includes the text of artifacts, of a direct reply, and of a status
   * message that ends or interrupts the task, such as a question. Omits progress, data and files.
   *
   * An agent may replace an artifact, such as after a crash when its model answers again. Repeated text is not yielded again. If the new
   * text differs, a piece with `reset` has the whole text of the artifact so far.
   *
   * Clients of `connectJsonRpc` throw here; call `readText(stream)` instead.
   *
   * @example
   * ```ts
   * for await (const { text, reset } of client.sendStreamingMessage("Will it rain?").text()) {
   *   if (reset) process.stdout.write("\n[the agent began again]\n");
   *   process.stdout.write(text);
   * }
   * ```
   */
  text(): AsyncGenerator<TextPiece, void, void> {
    return (this.#readText ?? leftOut)(this, this.#known);
  }

  /**
   * Sends the request, unless a read has done so, and waits until the agent has accepted it. Returns the URIs of the
   * extensions that the agent activated.
   *
   * @throws A2AError with the error of the agent.
   */
  async opened(): Promise<{ readonly extensions: readonly string[] }> {
    const reply = await (this.#opened ??= this.#open());
    return { extensions: reply.extensions ?? [] };
  }

  /** The stream itself, for `for await`. */
  [Symbol.asyncIterator](): this {
    return this;
  }

  /** Returns the next event. A buffered event costs one microtask; a generator would need three. */
  next(): Promise<Result<E>> {
    const item = this.#waiting === 0 ? this.#take() : undefined;
    if (item !== undefined) return Promise.resolve(item);
    this.#waiting += 1;
    const read = (): Promise<Result<E>> => this.#read();
    // Sequentially, so that the first read gets the first event.
    return (this.#last = this.#last === undefined ? read() : this.#last.then(read, read));
  }

  #take(): Result<E> | undefined {
    const item = this.#batch[this.#at];
    if (item === undefined) return undefined;
    this.#at += 1;
    this.#seq = item.seq;
    const { value } = item.payload;
    this.#status = (value.task ?? value.statusUpdate)?.status ?? this.#status;
    this.#observe?.(value);
    return { done: false, value: value as ReceivedEvent<E> };
  }

  async #read(): Promise<Result<E>> {
    try {
      for (;;) {
        const item = this.#take();
        if (item !== undefined) return item;
        if (this.#over) return over;
        const { batches } = await (this.#opened ??= this.#open());
        const result = await (this.#batches ??= batches[Symbol.asyncIterator]()).next();
        if (result.done === true) this.#over = true;
        else if (!this.#over) {
          this.#batch = result.value;
          this.#at = 0;
        }
      }
    } catch (thrown) {
      if (this.#over) return over;
      this.#over = true;
      throw thrown;
    } finally {
      this.#waiting -= 1;
    }
  }

  /** Closes the stream. `for await` calls it when the loop ends early. */
  async return(): Promise<Result<E>> {
    await this.close();
    return over;
  }

  /** Closes the stream, even before it was opened. Reads that wait then get the end of the stream. */
  async close(): Promise<void> {
    this.#over = true;
    this.#batch = [];
    const reply = await this.#opened?.catch(() => undefined);
    if (reply) await (this.#batches ??= reply.batches[Symbol.asyncIterator]()).return?.();
  }
}

/** Merges text parts, as Parley servers do. */
const asRead = { mergeTextParts: true } as const;

/**
 * The current task, built from the events of a stream. Merges adjacent text parts of an artifact, as Parley servers do.
 *
 * @example
 * ```ts
 * const view = new TaskView();
 * for await (const event of client.subscribeToTask(taskId)) {
 *   view.apply(event);
 *   console.log(view.task?.artifacts?.length ?? 0);
 * }
 * ```
 */
export class TaskView {
  #fold: TaskFold | undefined;
  #message: Message | undefined;

  /** Adds an event. A `task` event, such as after a reconnection, replaces all earlier content. */
  apply(event: StreamResponse): void {
    if (event.message !== undefined) {
      this.#message = event.message;
    } else if (event.task !== undefined) {
      this.#fold = new TaskFold(event.task, asRead);
    } else {
      const update = event.statusUpdate ?? event.artifactUpdate;
      // Some servers omit the task at the start of a stream.
      this.#fold ??= new TaskFold(
        { id: update.taskId, contextId: update.contextId, status: { state: "TASK_STATE_SUBMITTED" } },
        asRead,
      );
      const problem = this.#fold.apply(event);
      if (problem === "unknownArtifact" && event.artifactUpdate !== undefined) {
        const { append: _, ...first } = event.artifactUpdate;
        this.#fold.apply({ artifactUpdate: first });
      }
    }
  }

  /** The task after the events so far; `undefined` before the first event of a task. */
  get task(): Task | undefined {
    return this.#fold?.snapshot();
  }

  /** The direct reply of an agent that created no task. */
  get message(): Message | undefined {
    return this.#message;
  }
}

/**
 * Reads a stream to its end and returns the task, or the message of an agent that created no task.
 *
 * @throws A2AError `InvalidResponse` if the stream has no event, and the errors of the stream.
 *
 * @example
 * ```ts
 * const { task, message } = await collect(client.sendStreamingMessage("Will it rain?"));
 * ```
 */
export async function collect(
  stream: AsyncIterable<StreamResponse>,
): Promise<{ readonly task: Task; readonly message?: never } | { readonly message: Message; readonly task?: never }> {
  const view = new TaskView();
  for await (const event of stream) view.apply(event);
  const { task, message } = view;
  if (task !== undefined) return { task };
  if (message !== undefined) return { message };
  throw new A2AError("InvalidResponse", "The stream ended without an event");
}

export interface TaskSource {
  readonly card: { readonly capabilities: { readonly streaming?: boolean } };
  getTask(id: string, options: CallOptions): Promise<Task>;
  subscribeToTask(id: string, options: CallOptions): AsyncIterable<StreamResponse>;
}

/** Minimum and maximum delay between two polls, in milliseconds. */
export const minPollMs = 500;
export const maxPollMs = 10_000;

/**
 * Returns the task as soon as `until` returns true for it. Follows the stream of the task if the agent streams, and polls
 * otherwise. `options` apply to the whole wait.
 */
export async function waitForTask(
  source: TaskSource,
  id: string,
  until: (task: Task) => boolean,
  options: CallOptions,
  { clock }: { readonly clock: Clock },
): Promise<Task> {
  if (source.card.capabilities.streaming === true) {
    try {
      for await (const event of source.subscribeToTask(id, options)) {
        const task = event.statusUpdate === undefined ? event.task : await source.getTask(id, options);
        if (task !== undefined && until(task)) return task;
      }
    } catch (thrown) {
      // Some agents declare streaming but do not support it, and some cannot stream a task from before their last restart.
      if (!refusesFinished(thrown)) throw thrown;
    }
  }
  for (let delay = minPollMs; ; delay = Math.min(maxPollMs, delay * 1.5)) {
    const task = await source.getTask(id, options);
    if (until(task)) return task;
    const { state } = task.status;
    if (isTerminal(state)) {
      throw new A2AError("UnsupportedOperation", `Task ${id} ended in ${state}`);
    }
    await pause(clock, delay, options.signal);
  }
}
