import type { Clock } from "@parley/a2a/internal/base/index";
import { taskFields } from "@parley/a2a/internal/protocol/index";
import type { TaskHead } from "../../store/index.ts";
import type { EngineSettings } from "../shared/settings.ts";
import type { Outage } from "./outage.ts";

interface PollerInit {
  readonly clock: Clock;
  readonly work: () => Promise<void>;
  /** Whether the server is stopping, so that no further poll starts. */
  readonly isOver: () => boolean;
}

/** Polls the store for due rows, one poll at a time, when `now` is called and after a delay. */
export class Poller {
  readonly #init: PollerInit;
  #hasTimer = false;
  #polling: Promise<void> | undefined;
  #again = false;
  #clearTimer: () => void = () => {};
  /** When the next poll is due, on the monotonic clock. */
  #next = Infinity;

  constructor(init: PollerInit) {
    this.#init = init;
  }

  start(background: boolean): void {
    this.#hasTimer = background;
    void this.now();
  }

  stop(): Promise<void> {
    this.#hasTimer = false;
    this.#clearTimer();
    return this.#polling ?? Promise.resolve();
  }

  /** Polls now. A call during a poll causes another poll. Never rejects. */
  async now(): Promise<void> {
    if (this.#polling !== undefined) {
      this.#again = true;
      return this.#polling;
    }
    this.#next = Infinity;
    this.#clearTimer();
    this.#polling = this.#init.work();
    await this.#polling;
    this.#polling = undefined;
    if (!this.#again || this.#init.isOver()) return;
    this.#again = false;
    await this.now();
  }

  /** Polls in `ms` milliseconds, unless an earlier poll is due. */
  after(ms: number): void {
    const { clock } = this.#init;
    const wait = Math.max(1, ms);
    if (!this.#hasTimer || clock.elapsed() + wait >= this.#next) return;
    this.#clearTimer();
    this.#clearTimer = clock.after(wait, () => void this.now());
    this.#next = clock.elapsed() + wait;
  }
}

/** Rotates a list to a random start, so that processes that read the same rows do not all try the same row first. */
export function shuffled<T>(items: readonly T[]): readonly T[] {
  const from = Math.floor(Math.random() * items.length);
  return [...items.slice(from), ...items.slice(0, from)];
}

/** Maximum backoff for a task, in milliseconds. */
const longestPause = 60 * 60_000;
/** How many failed tasks are remembered. */
const maxFailures = 10_000;

interface Failure {
  readonly tries: number;
  readonly due: number;
}

interface BackoffDeps {
  readonly settings: Pick<EngineSettings, "clock" | "lease" | "logger">;
  readonly outage: Pick<Outage, "failed">;
}

/**
 * Retries tasks that could not be taken over, with increasing delays, so that they do not delay other tasks. Logs the first
 * failure. An outage of the database does not count as a failure.
 */
export class Backoff {
  readonly #deps: BackoffDeps;
  readonly #failures = new Map<string, Failure>();
  readonly #text: string;

  constructor(deps: BackoffDeps, text: string) {
    this.#deps = deps;
    this.#text = text;
  }

  isDue(taskId: string): boolean {
    return (this.#failures.get(taskId)?.due ?? -Infinity) <= this.#deps.settings.clock.elapsed();
  }

  hasFailed(taskId: string): boolean {
    return this.#failures.has(taskId);
  }

  /** The result of `work`, or `undefined` when it fails. `again`: the caller retries immediately, so this failure does not count. */
  async guard<Result>(
    { task, contextId }: Pick<TaskHead, "task"> & { readonly contextId?: string },
    work: () => Promise<Result>,
    again = false,
  ): Promise<Result | undefined> {
    const { taskId } = task;
    try {
      const result = await work();
      this.#failures.delete(taskId);
      return result;
    } catch (cause) {
      // The task is retried as soon as the database is back.
      if (await this.#deps.outage.failed(cause)) return undefined;
      const { clock, lease, logger } = this.#deps.settings;
      const failed = this.#failures.get(taskId)?.tries ?? 0;
      if (again) this.#remember(taskId, { due: -Infinity, tries: failed });
      else {
        const pause = Math.min(longestPause, lease.ttl * 2 ** failed);
        this.#remember(taskId, { tries: failed + 1, due: clock.elapsed() + pause });
        if (failed === 0) logger.error(this.#text, { ...taskFields({ ...task, contextId }), cause });
      }
      return undefined;
    }
  }

  #remember(taskId: string, failure: Failure): void {
    if (this.#failures.size >= maxFailures) this.#failures.clear();
    this.#failures.set(taskId, failure);
  }
}
