import { A2AError } from "../model/index.ts";
import type { Clock } from "../base/index.ts";

/** What takes less passes while large things wait, until the budget is exceeded by half. Bytes. */
const small = 64 << 10;
const smallShare = 1.5;
/** How long a request waits for room, in milliseconds, and how many may wait at a time. */
const waitTimeout = 10_000;
const mostWaiting = 100;

interface Waiting {
  readonly owner: string;
  readonly bytes: number;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
  takeBack: () => void;
}

/**
 * What is held at one time, in bytes, such as the tasks that run here or the answers that leave. No owner has more than
 * half of it. What does not fit waits in a queue, and is refused after a timeout.
 */
export class ByteBudget {
  readonly #total: number;
  readonly #clock: Clock;
  readonly #refusal: string;
  #used = 0;
  readonly #owners = new Map<string, number>();
  #waiting: Waiting[] = [];

  /** `refusal`: message of the error when there is no room. */
  constructor(total: number, clock: Clock, refusal = "The server is busy with other large tasks") {
    this.#total = total;
    this.#clock = clock;
    this.#refusal = refusal;
  }

  /** Bytes that are taken. */
  get used(): number {
    return this.#used;
  }

  /** How many wait for room. */
  get waiting(): number {
    return this.#waiting.length;
  }

  /** Takes room if there is some. While nothing large is held anything fits: a task larger than the budget could never run otherwise. */
  tryTake(owner: string, bytes: number): boolean {
    if (bytes < small ? this.#used + bytes > this.#total * smallShare : !this.#fits(owner, bytes)) return false;
    this.#take(owner, bytes);
    return true;
  }

  /**
   * Takes room as soon as there is some; rejects with `Unavailable` when the queue is full, and after the timeout. `signal`
   * is asked for once a request has to wait: it leaves the queue with its caller.
   */
  take(owner: string, bytes: number, signal?: () => AbortSignal | undefined): Promise<void> {
    if (this.tryTake(owner, bytes)) return Promise.resolve();
    if (this.#waiting.length >= mostWaiting) return Promise.reject(this.#noRoom());
    return new Promise((resolve, reject) => {
      const leaving = signal?.();
      const waiting: Waiting = { owner, bytes, resolve, reject, takeBack: () => {} };
      const leave = (error: A2AError): void => {
        this.#waiting = this.#waiting.filter((each) => each !== waiting);
        waiting.takeBack();
        reject(error);
      };
      const gone = (): void => leave(new A2AError("Aborted", "The caller is gone"));
      const late = this.#clock.after(waitTimeout, () => leave(this.#noRoom()));
      waiting.takeBack = () => {
        late();
        leaving?.removeEventListener("abort", gone);
      };
      this.#waiting.push(waiting);
      if (leaving?.aborted === true) gone();
      else leaving?.addEventListener("abort", gone, { once: true });
    });
  }

  /** What is held has grown or shrunk. Never refused: the task runs already. */
  change(owner: string, from: number, to: number): void {
    this.#take(owner, to);
    this.give(owner, from);
  }

  /** Gives room back, and serves the queue with it. */
  give(owner: string, bytes: number): void {
    this.#used -= bytes;
    if (bytes >= small) {
      const left = (this.#owners.get(owner) ?? 0) - bytes;
      if (left > 0) this.#owners.set(owner, left);
      else this.#owners.delete(owner);
    }
    if (this.#waiting.length > 0) this.#serve();
  }

  /** The server stops: rejects all that wait. */
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

  #noRoom(): A2AError {
    return new A2AError("Unavailable", this.#refusal, { retryAfter: 5 });
  }
}
