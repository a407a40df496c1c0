import type { Clock } from "../../base/index.ts";
import type { Sink } from "../../protocol/index.ts";

/** A stream on the wheel. */
export interface Beat {
  readonly sink: Sink;
  /** Where on the wheel. */
  readonly slot: number;
  /** The peer takes nothing at the moment: comments would only pile up. */
  behind: boolean;
}

const slots = 16;
/**
 * A line of its own, without the blank one that ends an event: it belongs to the event that comes next, and is nothing to
 * it (HTML Living Standard §9.2.6). After a blank one `httpx-sse`, and with it the Python SDK of 0.3, takes the `id` of the
 * last event for an event without data.
 */
const comment = ":\n";

/**
 * Sends a comment to every open stream once an interval, so that proxies and peers do not take a silent one for dead.
 * One timer for all of them: a wheel whose slots come round in turn, so that ten thousand streams are not
 * written to at once. It stands still while there are none.
 */
export class KeepAlive {
  readonly #clock: Clock;
  readonly #step: number;
  readonly #wheel: readonly Set<Beat>[] = Array.from({ length: slots }, () => new Set<Beat>());
  #size = 0;
  #next = 0;
  #turning = false;

  /** `interval` in milliseconds. */
  constructor(clock: Clock, interval: number) {
    this.#clock = clock;
    this.#step = interval / slots;
  }

  /** How many streams are on the wheel. */
  get size(): number {
    return this.#size;
  }

  /** Puts a stream on the wheel. */
  add(sink: Sink): Beat {
    const beat: Beat = { sink, slot: (this.#next + this.#size) % slots, behind: false };
    this.#slot(beat.slot).add(beat);
    this.#size++;
    this.#turn();
    return beat;
  }

  /** Takes it down. */
  remove(beat: Beat): void {
    if (this.#slot(beat.slot).delete(beat)) this.#size--;
  }

  #slot(index: number): Set<Beat> {
    return this.#wheel[index] as Set<Beat>;
  }

  #turn(): void {
    if (this.#turning || this.#size === 0) return;
    this.#turning = true;
    this.#clock.after(this.#step, () => {
      this.#turning = false;
      for (const beat of this.#slot(this.#next)) {
        if (!beat.behind && !beat.sink.closed && !beat.sink.write(comment)) void caughtUp(beat);
      }
      this.#next = (this.#next + 1) % slots;
      this.#turn();
    });
  }
}

/** Holds comments back until the peer takes something again. */
export async function caughtUp(beat: Beat): Promise<void> {
  beat.behind = true;
  await beat.sink.ready();
  beat.behind = false;
}
