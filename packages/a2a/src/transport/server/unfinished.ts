import type { Clock } from "../../base/index.ts";
import { A2AError } from "../../model/index.ts";
import { smallBody, type BodyBudget, type BodyPlace, type BodyReader } from "../../protocol/index.ts";
import { cannotServe } from "./binding.ts";

/** Time between two checks of the senders' progress while memory is scarce, in milliseconds. */
const interval = 1_000;

/** A body is slow if fewer bytes than this arrive in an interval. */
const slowBytes = 8 * 1024;

/** A body that is slow for this many intervals in a row is rejected if other bodies need its room. */
const slowIntervals = 3;

/** A body that has waited for room for this many intervals is rejected. */
const waitIntervals = 10;

/** Minimum memory of a body, in bytes, because its request and buffers exist before its content. */
const least = 1024;

/** A part of the memory budget. */
class Pool {
  readonly size: number;
  /** Maximum room of one connection. */
  readonly share: number;
  used = 0;
  readonly #byConnection = new Map<object, number>();

  constructor(size: number, share: number) {
    this.size = size;
    this.share = share;
  }

  take(bytes: number, connection: object | undefined): boolean {
    if (this.used + bytes > this.size) return false;
    if (connection !== undefined) {
      const own = (this.#byConnection.get(connection) ?? 0) + bytes;
      if (own > this.share && bytes > 0) return false;
      this.#byConnection.set(connection, own);
    }
    this.used += bytes;
    return true;
  }

  give(bytes: number, connection: object | undefined): void {
    this.used -= bytes;
    if (connection === undefined) return;
    const own = (this.#byConnection.get(connection) ?? 0) - bytes;
    if (own > 0) this.#byConnection.set(connection, own);
    else this.#byConnection.delete(connection);
  }
}

/**
 * Limits the memory of all request bodies that a server is receiving, over all connections.
 *
 * A quarter is reserved for small bodies, so that they never wait for large bodies. Large bodies wait in a queue, smallest first. A large
 * body is read further only when there is room for its whole size, so that two half-read bodies never wait for each other. While bodies
 * wait, slow senders are rejected.
 */
export class Unfinished implements BodyBudget {
  /** Room for small bodies. */
  readonly small: Pool;
  /** Room for large bodies. */
  readonly large: Pool;
  /** Room for bodies in the queue, because a body without `Content-Length` has been read in part when it is queued. */
  readonly queue: Pool;
  readonly #clock: Clock;
  readonly #places = new Set<Place>();
  readonly #waiting = new Set<Place>();
  #ticking = false;

  /** `bytes` is the whole budget, at least twice `largest`, which is the size of the largest body. Both are in bytes. */
  constructor(bytes: number, largest: number, clock: Clock) {
    this.small = new Pool(bytes / 4, bytes / 8);
    this.queue = new Pool(bytes / 8, bytes / 16);
    this.large = new Pool((bytes * 5) / 8, Math.max(largest, (bytes * 5) / 16));
    this.#clock = clock;
  }

  /** Registers a body. */
  enter(reader: BodyReader, connection?: object): BodyPlace {
    const place = new Place(this, reader, connection);
    this.#places.add(place);
    return place;
  }

  /** Bytes that bodies hold or have reserved. */
  get used(): number {
    return this.small.used + this.large.used + this.queue.used;
  }

  /** @internal */
  left(place: Place): void {
    this.#places.delete(place);
    this.#waiting.delete(place);
    // Only the end of a large body frees memory for waiting bodies.
    if (place.pool === this.large) this.gave();
  }

  /** Called when a large body has released memory. @internal */
  gave(): void {
    if (this.#waiting.size > 0) this.#letIn();
  }

  /** @internal */
  wait(place: Place): void {
    this.#waiting.add(place);
    this.watch();
  }

  /** Admits waiting bodies that fit, smallest first. */
  #letIn(): void {
    const waiting = [...this.#waiting].sort((one, other) => one.wanted - other.wanted);
    for (const place of waiting) {
      // `resume` may complete a body synchronously, which calls this function again.
      if (this.#waiting.has(place) && this.large.take(place.wanted, place.connection)) {
        this.#waiting.delete(place);
        place.moveTo(this.large, place.wanted);
        place.reader.resume();
      }
    }
  }

  /** Starts the checks of the senders' progress, which continue while room is scarce. @internal */
  watch(): void {
    if (this.#ticking || (this.#waiting.size === 0 && this.small.used <= this.small.size / 2)) return;
    this.#ticking = true;
    this.#clock.after(interval, () => {
      this.#ticking = false;
      this.#look();
      this.watch();
    });
  }

  #look(): void {
    const { small, large } = this;
    for (const place of this.#places) {
      if (this.#waiting.has(place)) {
        if (++place.waited > waitIntervals) place.refuse("The server has no room for a request of this size now");
      } else {
        place.slowFor = place.sent < slowBytes ? place.slowFor + 1 : 0;
        place.sent = 0;
        const isNeeded = place.pool === large ? this.#waiting.size > 0 : small.used > small.size / 2;
        if (isNeeded && place.slowFor >= slowIntervals)
          place.refuse("The request arrives too slowly for a busy server");
      }
    }
    // The share of a connection may have room again.
    if (this.#waiting.size > 0) this.#letIn();
  }
}

class Place implements BodyPlace {
  readonly reader: BodyReader;
  readonly connection: object | undefined;
  /** The pool from which the memory of the body is taken. */
  pool: Pool;
  #taken = 0;
  /** Maximum size of the body in bytes, once the body is known to be large. */
  wanted = 0;
  /** Bytes received since the last check. */
  sent = 0;
  slowFor = 0;
  waited = 0;
  readonly #all: Unfinished;
  #over = false;

  constructor(all: Unfinished, reader: BodyReader, connection: object | undefined) {
    this.#all = all;
    this.reader = reader;
    this.connection = connection;
    this.pool = all.small;
  }

  came(bytes: number): void {
    this.sent += bytes;
  }

  hold(held: number, most: number): boolean {
    const { large, queue } = this.#all;
    const wanted = Math.min(most, large.size, large.share);
    if (this.#over || (this.pool === large && wanted <= this.wanted)) return true;
    if (wanted <= smallBody) return this.#holdSmall(Math.max(least, held));
    // Subtract the memory that the body already has.
    const more = this.pool === large ? wanted - this.#taken : wanted;
    this.wanted = wanted;
    if (large.take(more, this.connection)) {
      if (this.pool === large) this.#taken = wanted;
      else this.moveTo(large, wanted);
      return true;
    }
    const queued = Math.max(least, held);
    if (!queue.take(queued, this.connection))
      throw this.#refusal("The server has no room for a request of this size now");
    this.moveTo(queue, queued);
    this.#all.wait(this);
    return false;
  }

  #holdSmall(bytes: number): boolean {
    const more = bytes - this.#taken;
    if (more <= 0) return true;
    if (!this.pool.take(more, this.connection)) throw this.#refusal("The server has too many unfinished requests now");
    this.#taken = bytes;
    this.#all.watch();
    return true;
  }

  shrink(most: number): void {
    const { large } = this.#all;
    if (this.#over || this.pool !== large || most >= this.#taken) return;
    large.give(this.#taken - most, this.connection);
    this.#taken = this.wanted = most;
    this.#all.gave();
  }

  /** Replaces the memory of the body with `bytes` that were taken from `pool`. */
  moveTo(pool: Pool, bytes: number): void {
    this.pool.give(this.#taken, this.connection);
    this.pool = pool;
    this.#taken = bytes;
  }

  leave(): void {
    if (this.#over) return;
    this.#over = true;
    this.pool.give(this.#taken, this.connection);
    this.#taken = 0;
    this.#all.left(this);
  }

  refuse(message: string): void {
    this.reader.refuse(this.#refusal(message));
  }

  #refusal(message: string): A2AError {
    this.leave();
    return new A2AError("Unavailable", message, { retryAfter: 5 });
  }
}

/**
 * The budget of request bodies.
 *
 * @param largest - Largest request body in bytes.
 * @param bytes - Memory of all bodies in bytes. Default: 64 MiB, or four times the largest body.
 */
export function unfinishedBodies(largest: number, bytes: number | undefined, clock: Clock): Unfinished {
  const all = bytes ?? Math.max(64 << 20, 4 * largest);
  if (all >= 2 * largest) return new Unfinished(all, largest, clock);
  throw cannotServe(
    "limits.unfinishedBytes",
    `is ${all}. It must be at least ${2 * largest}, twice \`limits.bodyBytes\``,
  );
}
