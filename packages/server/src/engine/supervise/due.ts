import type { Clock } from "@parley/a2a/internal/base/index";

interface LooksInit {
  readonly clock: Clock;
  /** One look. It never rejects. */
  readonly work: () => Promise<void>;
  /** Whether the server stops: no look follows the one that is under way. */
  readonly isOver: () => boolean;
}

/** Looks for rows of the store that are due: one look after the other, when it is called, and after a time. */
export class Looks {
  readonly #init: LooksInit;
  #started = false;
  #looking: Promise<void> | undefined;
  #again = false;
  #clearTimer: () => void = () => {};
  /** When it looks next, on the monotonic clock. */
  #next = Infinity;

  constructor(init: LooksInit) {
    this.#init = init;
  }

  /** `byItself` false: it looks when `now` is called. */
  start(byItself: boolean): void {
    this.#started = byItself;
    void this.now();
  }

  stop(): Promise<void> {
    this.#started = false;
    this.#clearTimer();
    return this.#looking ?? Promise.resolve();
  }

  /** A call that finds a look under way has it look again. Never rejects. */
  async now(): Promise<void> {
    if (this.#looking !== undefined) {
      this.#again = true;
      return this.#looking;
    }
    this.#next = Infinity;
    this.#clearTimer();
    this.#looking = this.#init.work();
    await this.#looking;
    this.#looking = undefined;
    if (!this.#again || this.#init.isOver()) return;
    this.#again = false;
    await this.now();
  }

  /** Looks after so many milliseconds, where it would not look before. */
  after(ms: number): void {
    const { clock } = this.#init;
    const wait = Math.max(1, ms);
    if (!this.#started || clock.elapsed() + wait >= this.#next) return;
    this.#clearTimer();
    this.#clearTimer = clock.after(wait, () => void this.now());
    this.#next = clock.elapsed() + wait;
  }
}

/** From a place by chance: processes that read the same rows begin with other ones of them. */
export function shuffled<T>(items: readonly T[]): readonly T[] {
  const from = Math.floor(Math.random() * items.length);
  return [...items.slice(from), ...items.slice(0, from)];
}
