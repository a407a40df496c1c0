import type { Clock } from "@parley/a2a/internal/base/index";

/** How often a waiting file calls `onWait`, in milliseconds. */
const pulse = 10_000;

interface Waiting {
  readonly owner: string;
  readonly begin: () => void;
}

/**
 * Limits the memory of files that are being stored. What does not fit waits for its turn without a timeout: its agent or client waits too. No
 * owner gets more than half of it while others wait.
 */
export class Uploads {
  readonly #most: number;
  readonly #clock: Pick<Clock, "after">;
  readonly #owners = new Map<string, number>();
  #count = 0;
  #waiting: Waiting[] = [];

  /** `total`: the limit in bytes. `each`: what one upload may hold. One always fits. */
  constructor(total: number, each: number, clock: Pick<Clock, "after">) {
    this.#clock = clock;
    this.#most = Math.max(1, Math.floor(total / each));
  }

  get waiting(): number {
    return this.#waiting.length;
  }

  /** Stores a file once there is room. `onWait`: called now and then until then. */
  async run<T>(owner: string, work: () => Promise<T>, onWait: () => void = () => {}): Promise<T> {
    if (this.#waiting.length > 0 || this.#count >= this.#most) await this.#wait(owner, onWait);
    else this.#take(owner);
    try {
      return await work();
    } finally {
      this.#give(owner);
    }
  }

  async #wait(owner: string, onWait: () => void): Promise<void> {
    let stop = (): void => {};
    const beat = (): void => {
      onWait();
      stop = this.#clock.after(pulse, beat);
    };
    beat();
    await new Promise<void>((resolve) => this.#waiting.push({ owner, begin: resolve }));
    stop();
  }

  #take(owner: string): void {
    this.#count += 1;
    this.#owners.set(owner, (this.#owners.get(owner) ?? 0) + 1);
  }

  #give(owner: string): void {
    this.#count -= 1;
    const left = (this.#owners.get(owner) ?? 1) - 1;
    if (left > 0) this.#owners.set(owner, left);
    else this.#owners.delete(owner);
    const own = (each: Waiting): number => this.#owners.get(each.owner) ?? 0;
    // The longest wait first, but not of an owner with half of it.
    const next = this.#waiting.find((each) => own(each) < this.#most / 2) ?? this.#waiting[0];
    if (next === undefined) return;
    this.#waiting = this.#waiting.filter((each) => each !== next);
    this.#take(next.owner);
    next.begin();
  }
}
