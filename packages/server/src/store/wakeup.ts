import { queueFeature } from "./transition.ts";
import { utf8Length, type Clock } from "@parley/a2a/internal/base/index";
import type { AppendItem, AppendOutcome } from "./append.ts";

/**
 * Tells the nodes of a cluster which tasks have changed, so that readers of these tasks read the store. Messages are hints: they may be late,
 * missing, repeated, or for a task without readers. If all messages are lost, this costs only latency, because each node also polls.
 *
 * `wakeupContract()` of `@parley/testing` tests an implementation.
 */
export interface Wakeup {
  /**
   * Whether messages of other nodes arrive now, as far as this node knows. While they do not, this node polls more often. `/readyz` reports
   * `"changes":"told"` or `"polled"`.
   */
  readonly isConnected: boolean;
  /**
   * Tells the other nodes that tasks have changed. Called after the commit. Returns immediately and never throws. Ids that are published within some
   * milliseconds are sent together; if they cannot be sent, they are dropped.
   */
  publish(taskIds: readonly string[]): void;
  /**
   * Calls `listener` with the id of a task that another node has changed. `undefined`: any task may have changed, such as after a lost
   * connection. The returned function stops the calls.
   */
  subscribe(listener: WakeupListener): () => void;
  /** Sends published messages, if possible immediately, and closes the connection. Later calls do nothing. */
  close(): Promise<void>;
}

/** Receives which task has changed; `undefined`: any may have. */
export type WakeupListener = (taskId: string | undefined) => void;

/** Published instead of a task id when a stopping process releases a run: other processes then poll for free runs. */
export const freeRuns = "\u0000runs";

/** Published instead of a task id when a task is queued: processes with room then poll for queued tasks. */
export const queuedRuns = "\u0000queue";

/** The ids to publish after a commit. */
export function changedBy(items: readonly AppendItem[], outcomes: readonly AppendOutcome[]): readonly string[] {
  const changed = new Set<string>();
  for (const [at, item] of items.entries()) {
    if (!("task" in item) || outcomes[at]?.ok !== true) continue;
    changed.add(item.task.taskId);
    for (const effect of item.effects ?? []) {
      if (effect.effect === "lease" && effect.op === "release") changed.add(freeRuns);
      else if (effect.effect === "feature" && effect.op === "set" && effect.feature === queueFeature)
        changed.add(queuedRuns);
    }
  }
  return [...changed];
}

/** How published ids are batched. */
export interface WakeupBatchOptions {
  /** The clock for `interval`. */
  readonly clock: Clock;
  /** Sends messages of at most `messageBytes` each, one call at a time. Its errors are passed to `onError`. */
  readonly send: (messages: readonly string[]) => Promise<void>;
  /** Called if `send` failed. Its messages are dropped, and the next message reports that any task may have changed. */
  readonly onError: (cause: unknown) => void;
  /** Maximum bytes of a message. */
  readonly messageBytes: number;
  /** Minimum time from the start of one call to the next, in milliseconds. Default 10. */
  readonly interval?: number;
  /** Maximum bytes of waiting ids. Beyond this limit, one message reports that any task may have changed. Default 64 KiB. */
  readonly pendingBytes?: number;
}

/**
 * Batches published ids. The first id is sent immediately. Ids that follow during a call, or within the interval after it, wait
 * for the next call, which sends each of them once. The bytes of waiting ids are limited.
 */
export class WakeupBatch {
  readonly #options: Required<WakeupBatchOptions>;
  /** A name of this node, so that it does not wake itself. */
  readonly #node: string = crypto.randomUUID();
  #pending = new Set<string>();
  #bytes = 0;
  /** Whether tasks have changed that are not among the waiting ids. */
  #overflows = false;
  #sending: Promise<void> | undefined;
  /** Cancels the scheduled call. */
  #cancel: (() => void) | undefined;
  #begun = -Infinity;
  #isClosed = false;
  /** Whether sending pauses until something new is published. */
  #isPaused = false;

  /** @param options - How ids are sent, and how many may wait. */
  constructor(options: WakeupBatchOptions) {
    this.#options = { interval: 10, pendingBytes: 65_536, ...options };
  }

  /** Adds ids to send. */
  add(taskIds: readonly string[]): void {
    if (this.#isClosed) return;
    for (const id of taskIds) {
      if (this.#overflows || this.#pending.has(id)) continue;
      const bytes = idBytes(id);
      if (this.#bytes + bytes > this.#options.pendingBytes || bytes + frameBytes > this.#options.messageBytes) {
        this.#overflows = true;
        this.#pending.clear();
      } else {
        this.#pending.add(id);
        this.#bytes += bytes;
      }
    }
    this.#schedule();
  }

  /** Called after a lost connection. Reports that any task may have changed. */
  resume(): void {
    if (!this.#isClosed) this.#schedule();
  }

  /** A message without ids, which shows that messages arrive. */
  ping(): string {
    return this.#message([]);
  }

  /** Reads a message. `undefined`: the message has an unknown form. */
  read(message: string): ReceivedWakeup | undefined {
    let value: unknown;
    try {
      value = JSON.parse(message);
    } catch {
      return undefined;
    }
    if (!Array.isArray(value)) return undefined;
    const members: readonly unknown[] = value;
    const [node, ...given] = members;
    const ids = given.filter((id) => typeof id === "string" || id === null);
    if (typeof node !== "string" || ids.length < given.length) return undefined;
    return { isOwn: node === this.#node, taskIds: ids.includes(null) ? [undefined] : ids.map((id) => id ?? undefined) };
  }

  /** Sends waiting ids, and accepts no more. */
  async close(): Promise<void> {
    this.#isClosed = true;
    this.#cancel?.();
    this.#cancel = undefined;
    await this.#sending;
    if (this.#waits() && !this.#isPaused) await this.#send();
  }

  #waits(): boolean {
    return this.#overflows || this.#pending.size > 0;
  }

  #schedule(): void {
    this.#isPaused = false;
    if (!this.#waits() || this.#sending !== undefined || this.#cancel !== undefined) return;
    const { clock, interval } = this.#options;
    const wait = this.#begun + interval - clock.elapsed();
    let isCanceled = false;
    const run = (): void => {
      if (isCanceled) return;
      this.#cancel = undefined;
      void this.#send();
    };
    const cancelTimer = wait > 0 ? clock.after(wait, run) : undefined;
    this.#cancel = () => {
      isCanceled = true;
      cancelTimer?.();
    };
    // Ids that are published before the next await are sent together.
    if (cancelTimer === undefined) queueMicrotask(run);
  }

  #send(): Promise<void> {
    const { send, onError, clock } = this.#options;
    const messages = this.#take();
    this.#begun = clock.elapsed();
    const failed = (cause: unknown): void => {
      // Do not retry, because the next call would most likely fail, too.
      this.#overflows = true;
      this.#isPaused = true;
      onError(cause);
    };
    // An async function, so that a synchronous error of `send` rejects, too.
    const sending = (async () => send(messages))()
      .catch(failed)
      .finally(() => {
        this.#sending = undefined;
        if (!this.#isClosed && !this.#isPaused) this.#schedule();
      });
    this.#sending = sending;
    return sending;
  }

  /** Removes all waiting ids, and returns them as messages. */
  #take(): readonly string[] {
    const ids = [...this.#pending];
    const overflows = this.#overflows;
    this.#pending.clear();
    this.#bytes = 0;
    this.#overflows = false;
    if (overflows) return [this.#message([null])];
    const messages: string[] = [];
    let part: string[] = [];
    let bytes = frameBytes;
    for (const id of ids) {
      const more = idBytes(id);
      if (bytes + more > this.#options.messageBytes) {
        messages.push(this.#message(part));
        part = [];
        bytes = frameBytes;
      }
      part.push(id);
      bytes += more;
    }
    messages.push(this.#message(part));
    return messages;
  }

  #message(ids: readonly (string | null)[]): string {
    return JSON.stringify([this.#node, ...ids]);
  }
}

/** A received message. */
export interface ReceivedWakeup {
  /** Whether this node sent the message. */
  readonly isOwn: boolean;
  /** Tasks that have changed; `undefined` for any task. */
  readonly taskIds: readonly (string | undefined)[];
}

/** Bytes of a message without ids: brackets, quotes and the name of the node. */
const frameBytes = 40;

/** Bytes of an id in a message, with its comma. */
function idBytes(id: string): number {
  return utf8Length(JSON.stringify(id)) + 1;
}
