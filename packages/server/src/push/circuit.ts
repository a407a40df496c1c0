import { BoundedMap, memoryOf } from "@parley/a2a/internal/base/bounded-map";
import type { Clock } from "@parley/a2a/internal/base/index";

/*
 * How many requests go to an origin at a time. An origin begins with one. It gets more with each success, and one after a failure.
 * After several failures it gets none for a while. What is learned is told to other processes (`receivers.ts`).
 */

/** Failures in a row after which an origin gets no request for a while. */
const maxFailures = 5;
/** The first pause and the longest one, in milliseconds. Each is twice the one before. */
const firstPause = 10_000;
const longestPause = 5 * 60_000;
/** A pause is longer or shorter by up to this share. */
const jitter = 0.2;
/** An origin whose requests take longer, in milliseconds, may not use the half of all requests that is kept for the others. */
const slow = 2_000;
/** Jobs that may wait in this process for an origin that answers, and for one that has not answered yet. */
const maxWaiting = 256;
const maxWaitingForNew = 8;
/**
 * A request that takes longer than this many times what others took, and than this many milliseconds more, changes the estimate by no
 * more than that: it may be this process that stood still.
 */
const surprise = 4;
const outlierSlackMs = 200;
/** What is known of origins without a job is kept in so many bytes. */
const rememberedBytes = 2 << 20;

/** What a request showed about its origin. `unclear`: it answered, but not as it should. */
export type Health = "alive" | "dead" | "unclear";

/** The end of a job's turn. */
export interface TurnEnd {
  /** What its request showed. Absent: there was none. */
  readonly health?: Health;
  /** How long its request took, in milliseconds. */
  readonly took?: number;
}

/** What is known of an origin, as other processes read it. Times are of the wall clock, in milliseconds. */
export interface Known {
  /** When it was learned. */
  readonly at: number;
  /** Failures in a row. */
  readonly failures: number;
  /** The last pause, and until when it lasts. */
  readonly pause: number;
  readonly until: number;
  /** How many requests it took at a time. */
  readonly allowed: number;
  /** Whether it answered the last request, and about how long a request takes. */
  readonly succeeded: boolean;
  readonly takes: number;
}

/** The time now: on the wall clock, and on the monotonic clock. */
export interface Now {
  readonly wall: number;
  readonly elapsed: number;
}

/** An origin, with the jobs that wait for it. */
export class Origin<Job> {
  readonly name: string;
  readonly waiting: Job[] = [];
  /** When its requests began, on the monotonic clock. */
  readonly running: number[] = [];
  /** How many requests it may have at a time. */
  allowed = 1;
  /** How many jobs were put off since the last look at the rows that are due. */
  putOff = 0;
  /** When this process asked last what others know, on the monotonic clock. */
  askedAt: number = -Infinity;
  /** What others know, as far as it matters, and since when, on the wall clock. */
  #told = "";
  #toldAt = -Infinity;
  /** When the last of this was learned, on the wall clock, and whether it was by a request of this process. */
  #learnedAt = -Infinity;
  #isOwn = false;
  #failures = 0;
  /** When the last failure that counts was seen, on the monotonic clock. */
  #failedAt = -Infinity;
  #succeeded = false;
  #pause = 0;
  /** On the monotonic clock. */
  #closedUntil = -Infinity;
  /** About how long a request takes, in milliseconds. */
  #takes = 20;

  constructor(name: string) {
    this.name = name;
  }

  /** Whether it answered the last request, and fast. */
  get trusted(): boolean {
    return this.#succeeded && this.#takes < slow;
  }

  /** How long it gets no request, in milliseconds. 0: it gets some. */
  closedFor(elapsed: number): number {
    return Math.max(0, this.#closedUntil - elapsed);
  }

  /**
   * How long one more job has to be put off, in milliseconds: until the origin gets requests again, or until it may have answered
   * the jobs before this one. `undefined`: it can wait here.
   */
  putOffFor(elapsed: number, random: number): number | undefined {
    const closed = this.closedFor(elapsed);
    if (closed > 0) return Math.ceil(closed + this.#pause * random);
    const jobs = this.waiting.length + this.running.length;
    const most = this.#failures > 0 ? 1 : this.trusted ? maxWaiting : maxWaitingForNew;
    if (jobs < most) return undefined;
    this.putOff += 1;
    const takes = Math.max(this.#takes, likely(elapsed - (this.running[0] ?? elapsed), this.#takes));
    const turns = (jobs + this.putOff) / Math.max(4, this.allowed);
    return Math.ceil(Math.min(longestPause, Math.max(20, turns * takes)));
  }

  /** What others do not know yet. `undefined`: nothing that matters. It counts as told from then on. `repeatMs`: it is told again after that. */
  news({ wall, elapsed }: Now, repeatMs: number): Known | undefined {
    const known: Known = {
      at: this.#learnedAt,
      failures: this.#failures,
      pause: this.#pause,
      until: Math.ceil(wall + this.closedFor(elapsed)),
      allowed: this.allowed,
      succeeded: this.#succeeded,
      takes: Math.round(this.#takes),
    };
    const gist = gistOf(known);
    if (!this.#isOwn || (gist === this.#told && wall - this.#toldAt < repeatMs)) return undefined;
    this.#told = gist;
    this.#toldAt = wall;
    return known;
  }

  /**
   * Takes over what another process has learned since. Who has asked the origin itself does not believe all of it: a receiver that one
   * process cannot reach may be reached by another. So one more request decides.
   */
  learn(known: Known, { wall, elapsed }: Now, most: number): void {
    const at = Math.min(known.at, wall);
    if (at <= this.#learnedAt) return;
    const closedUntil = elapsed + Math.min(known.until - wall, longestPause * (1 + jitter));
    const hasFailed = this.#failures > 0;
    this.#learnedAt = at;
    this.#told = gistOf(known);
    this.#toldAt = at;
    if (known.failures === 0 && hasFailed) {
      this.#closedUntil = -Infinity;
      return;
    }
    const isDoubted = this.#isOwn && !hasFailed && known.failures >= maxFailures;
    this.#failures = isDoubted ? maxFailures - 1 : Math.max(this.#failures, known.failures);
    this.#pause = Math.max(this.#pause, Math.min(longestPause, known.pause));
    if (!isDoubted) this.#closedUntil = Math.max(this.#closedUntil, closedUntil);
    this.allowed = known.failures > 0 ? 1 : Math.min(most, Math.max(this.allowed, known.allowed));
    this.#succeeded = known.succeeded;
    this.#takes = known.takes;
  }

  /** After a request that began at `since`. `most`: requests that an origin may have at a time. */
  ended({ health, took }: TurnEnd, { since, most, elapsed, wall, random }: Ended): void {
    if (health === "alive" || health === "dead") {
      this.#isOwn = true;
      this.#learnedAt = wall;
    }
    if (took !== undefined) this.#takes += (likely(took, this.#takes) - this.#takes) / 4;
    if (health === "alive") {
      this.#failures = 0;
      this.#pause = 0;
      this.#succeeded = true;
      this.allowed = Math.min(most, this.allowed * 2);
    } else if (health === "dead") {
      this.#succeeded = false;
      this.allowed = 1;
      // Requests that were under way together fail together, as when a receiver starts again: that is one failure.
      if (since < this.#failedAt) return;
      this.#failedAt = elapsed;
      this.#failures += 1;
      if (this.#failures < maxFailures) return;
      this.#pause = Math.min(longestPause, this.#pause === 0 ? firstPause : 2 * this.#pause);
      this.#closedUntil = elapsed + this.#pause * (1 - jitter + 2 * jitter * random);
    }
  }
}

/** What of it others should know at once. */
function gistOf({ failures, pause, allowed, succeeded, takes }: Known): string {
  return JSON.stringify([failures, pause, allowed, succeeded && takes < slow]);
}

/** Circumstances of the end of a request. Times are of the monotonic clock, except `wall`. */
interface Ended extends Now {
  readonly since: number;
  readonly most: number;
  readonly random: number;
}

/** What a request took, as far as it is believed. */
function likely(took: number, takes: number): number {
  return Math.min(took, surprise * takes + outlierSlackMs);
}

/** What waits for its turn. */
interface Owned {
  readonly task: { readonly owner: string };
}

/** A job that has its turn. */
export interface Running<Job> {
  readonly job: Job;
  readonly origin: Origin<Job>;
  /** Ends its turn. */
  end(result: TurnEnd): void;
}

/** Gives the requests of a process to origins in turn, so that none waits for another. */
export class Origins<Job extends Owned> {
  /** Those with jobs, in the order of their turns. */
  readonly #active = new Map<string, Origin<Job>>();
  readonly #idle = new BoundedMap<Origin<Job>>({ bytes: rememberedBytes, bytesOf: (name) => memoryOf(name) });
  readonly #clock: Clock;
  readonly #most: number;
  readonly #maxPerOrigin: number;
  #running = 0;
  /** Of origins that did not answer the last request, or slowly. They get half of all requests at most. */
  #untrusted = 0;
  /** Those by their owners. */
  readonly #untrustedOf = new Map<string, number>();
  /** About how long they take, in milliseconds. */
  #untrustedTakes = 20;

  /** `most`: requests at a time. `maxPerOrigin`: requests of an origin at a time. */
  constructor(clock: Clock, most: number, maxPerOrigin: number) {
    this.#clock = clock;
    this.#most = most;
    this.#maxPerOrigin = maxPerOrigin;
  }

  /** What is known of an origin. */
  of(name: string): Origin<Job> {
    return this.#active.get(name) ?? this.#idle.get(name) ?? new Origin(name);
  }

  /** The time now. */
  now(): Now {
    return { wall: this.#clock.now(), elapsed: this.#clock.elapsed() };
  }

  /** Remembers that others were asked about an origin, and what they know. */
  learn(origin: Origin<Job>, known: Known | undefined): void {
    const now = this.now();
    origin.askedAt = now.elapsed;
    if (known !== undefined) origin.learn(known, now, this.#maxPerOrigin);
    this.settle(origin);
  }

  /** A job waits for its turn. */
  add(origin: Origin<Job>, job: Job): void {
    origin.waiting.push(job);
    this.#active.set(origin.name, origin);
  }

  /** The jobs that wait; they wait no longer. */
  takeAll(): readonly Job[] {
    return [...this.#active.values()].flatMap(({ waiting }) => waiting.splice(0));
  }

  /** A new look at the rows that are due begins. */
  beginLook(): void {
    for (const origin of this.#active.values()) origin.putOff = 0;
  }

  /** The next job that may run; `undefined`: none. */
  next(): Running<Job> | undefined {
    if (this.#running >= this.#most) return undefined;
    const elapsed = this.#clock.elapsed();
    const origin = this.#choose(elapsed);
    if (origin === undefined) return undefined;
    const job = origin.waiting.shift() as Job;
    // The next turn is that of another origin.
    this.#active.delete(origin.name);
    this.#active.set(origin.name, origin);
    return { job, origin, end: this.#begin(origin, job.task.owner, elapsed) };
  }

  /**
   * The origin whose turn it is. Of those that are not trusted it is one of the owner who has the fewest requests to such origins, so
   * that nobody's new receiver waits for all the dead ones of somebody else.
   */
  #choose(elapsed: number): Origin<Job> | undefined {
    let best: Origin<Job> | undefined;
    let least = Infinity;
    for (const origin of this.#active.values()) {
      const { waiting, running, allowed, trusted } = origin;
      const [job] = waiting;
      if (job === undefined || running.length >= allowed || origin.closedFor(elapsed) > 0) continue;
      if (trusted) return best ?? origin;
      const own = this.#untrustedOf.get(job.task.owner) ?? 0;
      if (own >= least || this.#untrusted >= this.#maxUntrusted) continue;
      [best, least] = [origin, own];
      if (own === 0) return best;
    }
    return best;
  }

  #begin(origin: Origin<Job>, owner: string, since: number): (result: TurnEnd) => void {
    const { trusted } = origin;
    origin.running.push(since);
    this.#running += 1;
    if (!trusted) this.#countUntrusted(owner, 1);
    return (result) => {
      origin.running.splice(origin.running.indexOf(since), 1);
      this.#running -= 1;
      if (!trusted) this.#countUntrusted(owner, -1);
      if (!trusted && result.took !== undefined)
        this.#untrustedTakes += (likely(result.took, this.#untrustedTakes) - this.#untrustedTakes) / 8;
      origin.ended(result, { since, most: this.#maxPerOrigin, ...this.now(), random: Math.random() });
    };
  }

  get #maxUntrusted(): number {
    return Math.max(1, this.#most >> 1);
  }

  #countUntrusted(owner: string, by: 1 | -1): void {
    this.#untrusted += by;
    const left = (this.#untrustedOf.get(owner) ?? 0) + by;
    if (left > 0) this.#untrustedOf.set(owner, left);
    else this.#untrustedOf.delete(owner);
  }

  /** How long one of so many jobs of origins that are not trusted waits for its turn, about, in milliseconds. */
  turnAfter(jobs: number): number {
    return Math.ceil(Math.min(longestPause, Math.max(100, (jobs / this.#maxUntrusted) * this.#untrustedTakes)));
  }

  /** Forgets an origin that has no job any more. What its requests showed is remembered. */
  settle(origin: Origin<Job>): void {
    if (origin.waiting.length > 0 || origin.running.length > 0) return;
    this.#active.delete(origin.name);
    origin.putOff = 0;
    this.#idle.set(origin.name, origin);
  }
}
