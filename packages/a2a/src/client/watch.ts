import { isTerminal, type A2AError, type StreamResponse, type Task, toA2AError } from "../model/index.ts";
import type { Clock } from "../base/index.ts";
import { follow, type Following, pause } from "../transport/client/signals.ts";
import type { CallOptions, SubscribeOptions } from "./requests.ts";
import { refusesFinished } from "./retry.ts";
import { type EventStream, maxPollMs, minPollMs, type TaskSource, TaskView } from "./stream.ts";

/** The state of a watched task. Snapshots are immutable; each change makes a new snapshot. */
export interface TaskSnapshot {
  /** The task so far. Members that did not change are the same objects as before. `undefined` before the first event. */
  readonly task: Task | undefined;
  /** Whether no more changes follow, because the task is terminal or following it failed. */
  readonly ended: boolean;
  /** Why following failed, after all reconnections. */
  readonly error?: A2AError;
}

/**
 * A task to show in a user interface. Pass both functions to React's `useSyncExternalStore`, or wrap them in a signal.
 * Created by `client.watch()`.
 */
export interface WatchedTask {
  /** Returns the same object until something changes. */
  getSnapshot(this: void): TaskSnapshot;
  /**
   * Calls `listener` after each change, once for events that arrive together. The first subscriber opens the stream, the last subscriber to
   * leave closes it, and a later subscriber continues it. After a failure, the next subscriber tries again.
   *
   * @returns A function that ends the subscription.
   */
  subscribe(this: void, listener: () => void): () => void;
}

interface WatchSource extends TaskSource {
  subscribeToTask(id: string, options: SubscribeOptions): EventStream;
}

/** Makes `Client.watch()`. */
export function watchTask(
  source: WatchSource,
  task: string | Task,
  options: CallOptions,
  { clock }: { readonly clock: Clock },
): WatchedTask {
  const watcher = new TaskWatcher(source, task, { ...options, timeout: false }, clock);
  return { getSnapshot: () => watcher.snapshot, subscribe: (listener) => watcher.subscribe(listener) };
}

class TaskWatcher {
  readonly #source: WatchSource;
  readonly #id: string;
  readonly #options: CallOptions;
  readonly #clock: Clock;
  readonly #listeners = new Set<{ readonly listener: () => void }>();
  readonly #view = new TaskView();
  /** Whether the agent streams. True until a stream is rejected. */
  #streams: boolean;
  /** Number of the last event, if the agent can replay. */
  #seq: number | undefined;
  #following: Following | undefined;
  #snapshot: TaskSnapshot = Object.freeze({ task: undefined, ended: false });
  /** Whether `#snapshot` is old. A new snapshot is made only when it is read, so once per frame and not once per event. */
  #isStale = false;
  #error: A2AError | undefined;

  constructor(source: WatchSource, task: string | Task, options: CallOptions, clock: Clock) {
    this.#source = source;
    this.#id = typeof task === "string" ? task : task.id;
    this.#options = options;
    this.#clock = clock;
    this.#streams = source.card.capabilities.streaming === true;
    if (typeof task === "object") this.#apply({ task });
  }

  get snapshot(): TaskSnapshot {
    if (!this.#isStale) return this.#snapshot;
    this.#isStale = false;
    const { task } = this.#view;
    const error = this.#error && { error: this.#error };
    const ended = error !== undefined || (task !== undefined && isTerminal(task.status.state));
    return (this.#snapshot = shared(this.#snapshot, { task, ended, ...error }));
  }

  subscribe(listener: () => void): () => void {
    const subscription = { listener };
    this.#listeners.add(subscription);
    if (this.#following === undefined && (!this.snapshot.ended || this.#error !== undefined)) {
      this.#following = follow(this.#options.signal);
      void this.#follow(this.#following);
    }
    return () => {
      this.#listeners.delete(subscription);
      if (this.#listeners.size > 0) return;
      this.#following?.own.abort();
      this.#following = undefined;
    };
  }

  async #follow(following: Following): Promise<void> {
    const hasLeft = (): boolean => this.#following !== following;
    // React subscribes, leaves and subscribes again within one tick. Only the subscription that remains opens a stream.
    await Promise.resolve();
    if (hasLeft()) return;
    const { signal } = following.own;
    const options = { ...this.#options, signal };
    if (this.#error !== undefined) this.#show();
    try {
      for (let delay = minPollMs; ; delay = Math.min(maxPollMs, delay * 1.5)) {
        const before = this.snapshot;
        if (this.#streams) await this.#read(options);
        // No `else`: `#streams` may have become false.
        if (!this.#streams) this.#apply({ task: await this.#source.getTask(this.#id, options) });
        if (this.snapshot.ended || hasLeft()) return;
        // A stream may end at an interrupted task, which continues later.
        if (this.snapshot !== before) delay = minPollMs;
        await pause(this.#clock, delay, signal);
      }
    } catch (thrown) {
      if (!hasLeft()) this.#show(toA2AError(thrown));
    } finally {
      following.release();
      if (!hasLeft()) this.#following = undefined;
    }
  }

  async #read(options: CallOptions): Promise<void> {
    const after = this.#seq === undefined ? {} : { after: this.#seq };
    const stream = this.#source.subscribeToTask(this.#id, { ...options, ...after });
    try {
      for await (const event of stream) {
        if (options.signal?.aborted === true) return;
        this.#seq = stream.seq;
        this.#apply(event, stream.buffered > 0);
      }
    } catch (thrown) {
      // Some agents declare streaming but do not support it, and some cannot stream a task from before their last restart.
      if (!refusesFinished(thrown)) throw thrown;
      this.#streams = false;
    }
  }

  /** Applies an event. With `more`, the next event has already arrived, so listeners are called only after that event. */
  #apply(event: StreamResponse, more = false): void {
    this.#view.apply(event);
    // Polls return tasks that did not change, so only tasks are compared. Comparing updates would cost time in proportion to the task.
    if (!more) this.#show(undefined, event.task !== undefined);
  }

  #show(error?: A2AError, compares = true): void {
    const before = this.#snapshot;
    this.#error = error;
    this.#isStale = true;
    if (compares && this.snapshot === before) return;
    // A copy, because a listener may add listeners.
    const current = [...this.#listeners];
    for (const { listener } of current) {
      try {
        listener();
      } catch (thrown) {
        // Report the listener's error as uncaught, as an EventTarget does, and call the other listeners.
        queueMicrotask(() => {
          throw thrown;
        });
      }
    }
  }
}

/** Replaces members of `next` with equal members of `before`, so that unchanged objects keep their identity. */
function shared<T>(before: T, next: T): T {
  if (before === next || !isNode(before) || !isNode(next) || next instanceof Error) return next;
  const entries = Object.entries(next).map(
    ([name, member]) => [name, Object.hasOwn(before, name) ? shared(before[name], member) : member] as const,
  );
  const isSame =
    Array.isArray(before) === Array.isArray(next) &&
    entries.length === Object.keys(before).length &&
    entries.every(([name, member]) => Object.hasOwn(before, name) && member === before[name]);
  if (isSame) return before;
  const made = Array.isArray(next) ? entries.map(([, member]) => member) : Object.fromEntries(entries);
  return Object.freeze(made) as T;
}

function isNode(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null;
}
