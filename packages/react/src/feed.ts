import type { Client, TaskSnapshot, WatchedTask } from "@parley/a2a";
import { hasCode, isTerminal, type Task } from "@parley/a2a/model";
import type { Clock } from "@parley/a2a/internal/base/index";
import { watchTask } from "@parley/a2a/internal/client/watch";
import { toA2AError } from "@parley/a2a/internal/model/index";
import { inFrame } from "./frame.ts";

/** The snapshot before a page follows a task: empty, or a task that a server or a call has read. */
export function snapshotOf(task: string | Task): TaskSnapshot {
  return typeof task === "string" ? { task: undefined, ended: false } : { task, ended: isTerminal(task.status.state) };
}

const clock: Clock = {
  now: () => Date.now(),
  elapsed: () => performance.now(),
  after(ms, run) {
    const timer = setTimeout(run, ms);
    return () => clearTimeout(timer);
  },
};

/** Connects to the agent of a task. */
export interface FeedSource {
  client(): Promise<Client>;
}

/**
 * A task for React: `Client.watch()`, shared by all components that show the task, with at most one change per frame. The first
 * subscriber opens the stream, and the last one closes it. The task continues without subscribers.
 */
export class TaskFeed {
  readonly id: string;
  readonly #source: FeedSource;
  readonly #listeners = new Set<() => void>();
  #snapshot: TaskSnapshot;
  #watched: WatchedTask | undefined;
  /** Ends the current subscription. */
  #leave: (() => void) | undefined;

  /** @param task - The task, or its id. A given task is the first snapshot, even on a server. */
  constructor(source: FeedSource, task: string | Task) {
    this.#source = source;
    this.id = typeof task === "string" ? task : task.id;
    this.#snapshot = snapshotOf(task);
  }

  /** The task as of the last frame. */
  readonly getSnapshot = (): TaskSnapshot => this.#snapshot;

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    if (this.#leave === undefined) this.#follow();
    return () => {
      this.#listeners.delete(listener);
      if (this.isIdle) this.#unfollow();
    };
  };

  /** Whether no component shows the task. */
  get isIdle(): boolean {
    return this.#listeners.size === 0;
  }

  /** The current task, which a page shows in the next frame. */
  get latest(): Task | undefined {
    return this.#watched?.getSnapshot().task ?? this.#snapshot.task;
  }

  /** Uses a task that a call returned, unless the stream delivered something newer than `before`. */
  put(task: Task, before: Task | undefined): void {
    if (this.latest !== before) return;
    this.#unfollow();
    this.#watched = undefined;
    this.#show(snapshotOf(task));
    if (!this.isIdle) this.#follow();
  }

  /** Cancels the task, unless it has ended. Rejects with the error of the call. */
  readonly stop = async (): Promise<void> => {
    const before = this.latest;
    if (before !== undefined && isTerminal(before.status.state)) return;
    try {
      const client = await this.#source.client();
      this.put(await client.cancelTask(this.id), before);
    } catch (thrown) {
      // The task ended meanwhile.
      if (!hasCode(thrown, "TaskNotCancelable")) throw thrown;
    }
  };

  /** Follows the task again after an error. */
  readonly retry = (): void => {
    if (this.#snapshot.error === undefined) return;
    this.#unfollow();
    this.#show({ task: this.#snapshot.task, ended: false });
    if (!this.isIdle) this.#follow();
  };

  #follow(): void {
    const { ended, error } = this.#snapshot;
    if (ended && error === undefined) return;
    let hasLeft = false;
    let end = (): void => undefined;
    this.#leave = () => {
      hasLeft = true;
      end();
    };
    const begin = (client: Client): void => {
      if (hasLeft) return;
      const followed = (this.#watched ??= watchTask(
        client,
        this.#snapshot.task ?? this.id,
        {},
        { card: client.card, clock },
      ));
      const show = (): void => {
        if (!hasLeft) this.#show(followed.getSnapshot());
      };
      end = followed.subscribe(() => inFrame(show));
      const { task, error: earlier } = followed.getSnapshot();
      if (task !== undefined && earlier === undefined) show();
    };
    this.#source.client().then(begin, (thrown: unknown) => {
      if (!hasLeft) this.#show({ task: this.#snapshot.task, ended: true, error: toA2AError(thrown) });
    });
  }

  #unfollow(): void {
    this.#leave?.();
    this.#leave = undefined;
  }

  #show(snapshot: TaskSnapshot): void {
    if (snapshot === this.#snapshot) return;
    this.#snapshot = snapshot;
    for (const listener of this.#listeners) listener();
  }
}
