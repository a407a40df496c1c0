import type { Clock } from "../../base/index.ts";
import { A2AError } from "../../model/index.ts";
import { smallBody, type BodyBudget, type BodyPlace, type BodyReader } from "../../protocol/index.ts";

/** How often senders are looked at while there is little room, in milliseconds. */
const interval = 1_000;

/** Who sends less than this in an interval stands in the way of others, in bytes. */
const slow = 8 * 1024;

/** For so many intervals, and it is sent away. */
const patience = 3;

/** How many intervals a body waits for room. */
const longestWait = 10;

/** What a body costs at least, beside its bytes. */
const least = 1024;

/** A share of the budget, and what is taken of it. */
class Pool {
  readonly size: number;
  /** Most that one connection may take. */
  readonly #share: number;
  used = 0;
  readonly #byConnection = new Map<object, number>();

  constructor(size: number, share: number) {
    this.size = size;
    this.#share = share;
  }

  take(bytes: number, connection: object | undefined): boolean {
    if (this.used + bytes > this.size) return false;
    if (connection !== undefined) {
      const own = (this.#byConnection.get(connection) ?? 0) + bytes;
      if (own > this.#share && bytes > 0) return false;
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
 * The bound on what all unfinished bodies of a server hold together, whoever sends them (D17). Small ones have a quarter
 * for themselves, so that they get through whatever else stands there. A large one is let in as a whole, so that two
 * halves never wait for each other: it waits for its room, the smallest first, while nothing more of it is read. Who lets
 * others wait has to send: the slow are sent away.
 */
export class Unfinished implements BodyBudget {
  readonly small: Pool;
  readonly large: Pool;
  /** What bodies hold that wait: those whose size was not known before. */
  readonly queue: Pool;
  readonly #clock: Clock;
  readonly #places = new Set<Place>();
  readonly #waiting = new Set<Place>();
  #ticking = false;

  /** `bytes`: all together; at least twice the largest body, or that could never come in. */
  constructor(bytes: number, largest: number, clock: Clock) {
    this.small = new Pool(bytes / 4, bytes / 8);
    this.queue = new Pool(bytes / 8, bytes / 16);
    this.large = new Pool((bytes * 5) / 8, Math.max(largest, (bytes * 5) / 16));
    this.#clock = clock;
  }

  enter(reader: BodyReader, connection?: object): BodyPlace {
    const place = new Place(this, reader, connection);
    this.#places.add(place);
    return place;
  }

  /** Bytes that unfinished bodies hold, or have been promised. */
  get used(): number {
    return this.small.used + this.large.used + this.queue.used;
  }

  /** @internal */
  left(place: Place): void {
    this.#places.delete(place);
    this.#waiting.delete(place);
    if (this.#waiting.size > 0) this.#letIn();
  }

  /** @internal */
  wait(place: Place): void {
    this.#waiting.add(place);
    this.watch();
  }

  /** Those who fit, the smallest of them first. @internal */
  #letIn(): void {
    const waiting = [...this.#waiting].sort((one, other) => one.wanted - other.wanted);
    for (const place of waiting) {
      // Whoever is let in may be over at once, and have let others in.
      if (this.#waiting.has(place) && this.large.take(place.wanted, place.connection)) {
        this.#waiting.delete(place);
        place.moveTo(this.large, place.wanted);
        place.reader.resume();
      }
    }
  }

  /** Looks at the senders from now on, as long as there is little room. @internal */
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
        if (++place.waited > longestWait) place.refuse("The server has no room for a request of this size now");
      } else {
        place.slowFor = place.sent < slow ? place.slowFor + 1 : 0;
        place.sent = 0;
        const inTheWay = place.pool === large ? this.#waiting.size > 0 : small.used > small.size / 2;
        if (inTheWay && place.slowFor >= patience) place.refuse("The request comes too slowly for a server this busy");
      }
    }
    // Room may have come for one that waited for its connection's share.
    if (this.#waiting.size > 0) this.#letIn();
  }
}

class Place implements BodyPlace {
  readonly reader: BodyReader;
  readonly connection: object | undefined;
  /** What it takes of which pool. */
  pool: Pool;
  #taken = 0;
  /** The most that it will take, once it is more than a small body. */
  wanted = 0;
  /** Since the last look. */
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
    const wanted = Math.min(most, large.size);
    if (this.#over || (this.pool === large && wanted <= this.wanted)) return true;
    if (wanted <= smallBody) return this.#holdSmall(Math.max(least, held));
    this.wanted = wanted;
    if (large.take(this.wanted, this.connection)) {
      this.moveTo(large, this.wanted);
      return true;
    }
    // Nobody else has to wait for what has come of it meanwhile.
    if (!queue.take(held, this.connection)) throw this.#away("The server has no room for a request of this size now");
    this.moveTo(queue, held);
    this.#all.wait(this);
    return false;
  }

  #holdSmall(bytes: number): boolean {
    const more = bytes - this.#taken;
    if (more <= 0) return true;
    if (!this.pool.take(more, this.connection)) throw this.#away("The server has too many unfinished requests now");
    this.#taken = bytes;
    this.#all.watch();
    return true;
  }

  /** To where `bytes` were taken for it. */
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
    this.reader.refuse(this.#away(message));
  }

  #away(message: string): A2AError {
    this.leave();
    return new A2AError("Unavailable", message, { retryAfter: 5 });
  }
}
