import { A2AError } from "../model/index.ts";
import type { Clock } from "../base/index.ts";

/** What takes less is never refused, nor made to wait. */
const small = 64 << 10;
/** How long somebody waits for room, and how many do at a time. */
const patience = 10_000;
const mostWaiting = 100;

interface Waiting {
  readonly owner: string;
  readonly bytes: number;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
  takeBack: () => void;
}

/**
 * What this process holds of tasks at one time, in bytes of JSON: of those that it runs, and the messages that they answer.
 * No owner has more than half of it. What does not fit waits for a while, and is then told to come again.
 */
export class ByteBudget {
  readonly #total: number;
  readonly #clock: Clock;
  #used = 0;
  readonly #owners = new Map<string, number>();
  #waiting: Waiting[] = [];

  constructor(total: number, clock: Clock) {
    this.#total = total;
    this.#clock = clock;
  }

  /** Takes room where there is some. Somebody who has none gets it however much that is: he could not be served otherwise. */
  tryTake(owner: string, bytes: number): boolean {
    if (bytes >= small && !this.#fits(owner, bytes)) return false;
    this.#take(owner, bytes);
    return true;
  }

  /** Takes room as soon as there is some; rejects with `Unavailable` where none comes in time. */
  take(owner: string, bytes: number): Promise<void> {
    if (this.tryTake(owner, bytes)) return Promise.resolve();
    if (this.#waiting.length >= mostWaiting) return Promise.reject(noRoom());
    return new Promise((resolve, reject) => {
      const waiting: Waiting = { owner, bytes, resolve, reject, takeBack: () => {} };
      waiting.takeBack = this.#clock.after(patience, () => {
        this.#waiting = this.#waiting.filter((each) => each !== waiting);
        reject(noRoom());
      });
      this.#waiting.push(waiting);
    });
  }

  /** What somebody holds has grown, or become less: there is no way back for him. */
  change(owner: string, from: number, to: number): void {
    this.#take(owner, to);
    this.give(owner, from);
  }

  /** Gives room back, and to those who wait for it. */
  give(owner: string, bytes: number): void {
    this.#used -= bytes;
    if (bytes >= small) {
      const left = (this.#owners.get(owner) ?? 0) - bytes;
      if (left > 0) this.#owners.set(owner, left);
      else this.#owners.delete(owner);
    }
    if (this.#waiting.length > 0) this.#serve();
  }

  /** The server stops: nobody waits any more. */
  close(error: unknown): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const each of waiting) {
      each.takeBack();
      each.reject(error);
    }
  }

  #take(owner: string, bytes: number): void {
    this.#used += bytes;
    if (bytes >= small) this.#owners.set(owner, (this.#owners.get(owner) ?? 0) + bytes);
  }

  #fits(owner: string, bytes: number): boolean {
    const own = this.#owners.get(owner) ?? 0;
    if (own > 0 && own + bytes > this.#total / 2) return false;
    return this.#used + bytes <= this.#total || this.#owners.size === 0;
  }

  #serve(): void {
    const still: Waiting[] = [];
    for (const each of this.#waiting) {
      if (this.tryTake(each.owner, each.bytes)) {
        each.takeBack();
        each.resolve();
      } else still.push(each);
    }
    this.#waiting = still;
  }
}

function noRoom(): A2AError {
  return new A2AError("Unavailable", "The server is busy with other large tasks", { retryAfter: 5 });
}
