import { A2AError } from "../model/index.ts";
import type { Clock } from "../base/index.ts";

/** Smaller requests, in bytes, pass while large ones wait, until the budget is exceeded by half. */
const small = 64 << 10;
const smallShare = 1.5;
/** How long a request waits for room, in milliseconds, and how many requests may wait at the same time. */
const waitTimeout = 10_000;
const maxWaiting = 100;
/** A reader counts as slow if it has not taken the next piece of an answer for this long, in milliseconds. */
const slowAfter = 10_000;

interface Waiting {
  readonly owner: string;
  readonly bytes: number;
  readonly resolve: () => void;
  readonly reject: (error: unknown) => void;
  takeBack: () => void;
}

/** A reader for which memory is reserved while its data is sent. */
interface Reader {
  readonly since: number;
  readonly giveUp: () => void;
}

/**
 * Limits the bytes held at one time, such as by running tasks or answers in flight. One owner gets at most half. Requests that do not fit
 * wait in a queue for up to 10 seconds.
 */
export class ByteBudget {
  readonly #total: number;
  readonly #clock: Clock;
  readonly #refusal: string;
  #used = 0;
  readonly #owners = new Map<string, number>();
  #waiting: Waiting[] = [];
  readonly #readers = new Set<Reader>();

  /** `total`: the limit in bytes. `refusal`: message of the error if there is not enough room. */
  constructor(total: number, clock: Clock, refusal = "The server is busy with other large tasks") {
    this.#total = total;
    this.#clock = clock;
    this.#refusal = refusal;
  }

  /** Number of taken bytes. */
  get used(): number {
    return this.#used;
  }

  /** Number of requests that wait for room. */
  get waiting(): number {
    return this.#waiting.length;
  }

  /** Takes room, or returns false. If nothing large is held, any size fits, because otherwise a task larger than the budget could never run. */
  tryTake(owner: string, bytes: number): boolean {
    if (bytes < small ? this.#used + bytes > this.#total * smallShare : !this.#fits(owner, bytes)) return false;
    this.#take(owner, bytes);
    return true;
  }

  /**
   * Takes room as soon as there is enough. Calls `signal` only if the request has to wait. Throws `Unavailable` if the queue is full or after the
   * timeout, and `Aborted`.
   */
  take(owner: string, bytes: number, signal?: () => AbortSignal | undefined): Promise<void> {
    if (this.tryTake(owner, bytes)) return Promise.resolve();
    if (this.#waiting.length >= maxWaiting) return Promise.reject(this.#noRoom());
    return new Promise((resolve, reject) => {
      const leaving = signal?.();
      const waiting: Waiting = { owner, bytes, resolve, reject, takeBack: () => {} };
      const leave = (error: A2AError): void => {
        this.#waiting = this.#waiting.filter((each) => each !== waiting);
        waiting.takeBack();
        reject(error);
      };
      const gone = (): void => leave(new A2AError("Aborted", "The client disconnected"));
      const late = this.#clock.after(waitTimeout, () => leave(this.#noRoom()));
      waiting.takeBack = () => {
        late();
        leaving?.removeEventListener("abort", gone);
      };
      this.#waiting.push(waiting);
      this.#giveUpSlowReaders();
      if (leaving?.aborted === true) gone();
      else leaving?.addEventListener("abort", gone, { once: true });
    });
  }

  /** Changes the size of a reservation. It is never rejected, because the task already runs. */
  change(owner: string, from: number, to: number): void {
    this.#take(owner, to);
    this.give(owner, from);
  }

  /** Releases room, which waiting requests may then take. */
  give(owner: string, bytes: number): void {
    this.#used -= bytes;
    if (bytes >= small) {
      const left = (this.#owners.get(owner) ?? 0) - bytes;
      if (left > 0) this.#owners.set(owner, left);
      else this.#owners.delete(owner);
    }
    if (this.#waiting.length > 0) this.#serve();
  }

  /** Waits until a reader has taken a piece of an answer. Throws `Unavailable` if the reader takes more than 10 seconds while others wait for room. */
  awaitReader(taken: Promise<void>): Promise<void> {
    return new Promise((resolve, reject) => {
      const reader: Reader = {
        since: this.#clock.elapsed(),
        giveUp: () => {
          this.#readers.delete(reader);
          reject(
            new A2AError("Unavailable", "The answer is read too slowly for a server this busy", { retryAfter: 5 }),
          );
        },
      };
      this.#readers.add(reader);
      taken.then(() => {
        this.#readers.delete(reader);
        resolve();
      }, reject);
    });
  }

  #giveUpSlowReaders(): void {
    const latest = this.#clock.elapsed() - slowAfter;
    for (const reader of this.#readers) if (reader.since <= latest) reader.giveUp();
  }

  /** Rejects all waiting requests, because the server stops. */
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
