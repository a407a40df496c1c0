import { BoundedMap, memoryOf } from "@parley/a2a/internal/base/bounded-map";
import type { Clock } from "@parley/a2a/internal/base/index";

/*
 * A circuit breaker and an adaptive concurrency limit per origin. An origin begins with one request at a time. The limit
 * grows with each success, and falls back to one after a failure. After several failures the circuit opens, and the origin gets no
 * requests for a while. Processes share this state (`receivers.ts`).
 */

/** Failures in a row that open the circuit. */
const maxFailures = 5;
/** The first and the longest pause, in milliseconds. Each pause is twice as long as the previous one. */
const firstPause = 10_000;
const longestPause = 5 * 60_000;
/** Each pause varies randomly by up to this fraction. */
const jitter = 0.2;
/** A trusted origin takes less than this for a request, in milliseconds. Half of all requests are reserved for trusted origins. */
const slowMs = 2_000;
/** Maximum waiting jobs of one origin in this process: if the origin answers, and if it has not answered yet. */
const maxWaiting = 256;
const maxWaitingForNew = 8;
/**
 * A request counts for at most `outlierFactor` times the estimated duration, plus `outlierSlackMs`, because this process may have been
 * suspended during the request.
 */
const outlierFactor = 4;
const outlierSlackMs = 200;
/** Memory for origins without a job, in bytes. */
const rememberedBytes = 2 << 20;

/** The health of an origin, as shown by a request. `unclear`: the origin answered with an error. */
export type Health = "alive" | "dead" | "unclear";

/** The end of a job's turn. */
export interface TurnEnd {
  /** The health of the origin. Absent: there was no request. */
  readonly health?: Health;
  /** How long the job's request took, in milliseconds. */
  readonly took?: number;
}

/** The state of an origin that processes share. Times are on the wall clock, in milliseconds. */
export interface Known {
  /** When the state was learned. */
  readonly at: number;
  /** Failures in a row. */
  readonly failures: number;
  /** The last pause, and until when it lasts. */
  readonly pause: number;
  readonly until: number;
  /** How many concurrent requests were allowed. */
  readonly allowed: number;
  /** Whether the origin answered the last request, and about how long a request takes, in milliseconds. */
  readonly succeeded: boolean;
  readonly takes: number;
}

/** The time on the wall clock, and on the monotonic clock. */
export interface Now {
  readonly wall: number;
  readonly elapsed: number;
}

/** An origin, with the jobs that wait for it. Times are on the monotonic clock, except where noted. */
export class Origin<Job> {
  readonly name: string;
  readonly waiting: Job[] = [];
  /** When the running requests began. */
  readonly running: number[] = [];
  /** Maximum concurrent requests to the origin. */
  allowed = 1;
  /** Jobs that were deferred since the last poll began. */
  deferred = 0;
  /** When this process last read the state that other processes share. */
  askedAt: number = -Infinity;
  /** The last shared `gistOf` the state, and when it was shared, on the wall clock. */
  #told = "";
  #toldAt = -Infinity;
  /** When the state was last updated, on the wall clock, and whether a request of this process updated it. */
  #learnedAt = -Infinity;
  #isOwn = false;
  #failures = 0;
  /** When the last counted failure occurred. */
  #failedAt = -Infinity;
  #succeeded = false;
  #pause = 0;
  #openUntil = -Infinity;
  /** About how long a request takes, in milliseconds. */
  #takes = 20;

  constructor(name: string) {
    this.name = name;
  }

  /** Whether the origin answered the last request, and is fast enough (`slowMs`). */
  get trusted(): boolean {
    return this.#succeeded && this.#takes < slowMs;
  }

  /** How long the circuit stays open, in milliseconds. 0: the circuit is closed. */
  openForMs(elapsed: number): number {
    return Math.max(0, this.#openUntil - elapsed);
  }

  /**
   * How long to defer one more job, in milliseconds: until the circuit closes, or until the origin may have answered the jobs before this
   * one. `undefined`: the job can wait in this process.
   */
  deferralMs(elapsed: number, random: number): number | undefined {
    const openFor = this.openForMs(elapsed);
    if (openFor > 0) return Math.ceil(openFor + this.#pause * random);
    const jobs = this.waiting.length + this.running.length;
    const maxJobs = this.#failures > 0 ? 1 : this.trusted ? maxWaiting : maxWaitingForNew;
    if (jobs < maxJobs) return undefined;
    this.deferred += 1;
    const takes = Math.max(this.#takes, likely(elapsed - (this.running[0] ?? elapsed), this.#takes));
    const turns = (jobs + this.deferred) / Math.max(4, this.allowed);
    return Math.ceil(Math.min(longestPause, Math.max(20, turns * takes)));
  }

  /** Returns the state, and marks it as shared, if it has changed or was last shared longer than `repeatMs` ago. `undefined`: nothing to share. */
  news({ wall, elapsed }: Now, repeatMs: number): Known | undefined {
    const known: Known = {
      at: this.#learnedAt,
      failures: this.#failures,
      pause: this.#pause,
      until: Math.ceil(wall + this.openForMs(elapsed)),
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
   * Applies newer state from another process. Two processes may not reach the same receivers, so if this process has sent
   * requests to the origin, and the last one did not fail, it tries one more before it opens the circuit.
   */
  learn(known: Known, { wall, elapsed }: Now, maxRequests: number): void {
    const at = Math.min(known.at, wall);
    if (at <= this.#learnedAt) return;
    const openUntil = elapsed + Math.min(known.until - wall, longestPause * (1 + jitter));
    const hasFailed = this.#failures > 0;
    this.#learnedAt = at;
    this.#told = gistOf(known);
    this.#toldAt = at;
    if (known.failures === 0 && hasFailed) {
      this.#openUntil = -Infinity;
      return;
    }
    const isDoubted = this.#isOwn && !hasFailed && known.failures >= maxFailures;
    this.#failures = isDoubted ? maxFailures - 1 : Math.max(this.#failures, known.failures);
    this.#pause = Math.max(this.#pause, Math.min(longestPause, known.pause));
    if (!isDoubted) this.#openUntil = Math.max(this.#openUntil, openUntil);
    this.allowed = known.failures > 0 ? 1 : Math.min(maxRequests, Math.max(this.allowed, known.allowed));
    this.#succeeded = known.succeeded;
    this.#takes = known.takes;
  }

  /** Called after a request that began at `since`. `most`: maximum concurrent requests of an origin. */
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
      // Requests that fail together, for example when a receiver restarts, count as one failure.
      if (since < this.#failedAt) return;
      this.#failedAt = elapsed;
      this.#failures += 1;
      if (this.#failures < maxFailures) return;
      this.#pause = Math.min(longestPause, this.#pause === 0 ? firstPause : 2 * this.#pause);
      this.#openUntil = elapsed + this.#pause * (1 - jitter + 2 * jitter * random);
    }
  }
}

/** The part of the state whose change is shared immediately. */
function gistOf({ failures, pause, allowed, succeeded, takes }: Known): string {
  return JSON.stringify([failures, pause, allowed, succeeded && takes < slowMs]);
}

interface Ended extends Now {
  readonly since: number;
  readonly most: number;
  readonly random: number;
}

/** The duration of a request, capped for outliers. */
function likely(took: number, takes: number): number {
  return Math.min(took, outlierFactor * takes + outlierSlackMs);
}

/** A job on behalf of an owner. */
interface Owned {
  readonly task: { readonly owner: string };
}

export interface Running<Job> {
  readonly job: Job;
  readonly origin: Origin<Job>;
  /** Ends the turn of `job`. */
  end(result: TurnEnd): void;
}

/** Divides the requests of a process among origins in turn, so that no origin waits for another. */
export class Origins<Job extends Owned> {
  /** Origins with jobs, in the order of their turns. */
  readonly #active = new Map<string, Origin<Job>>();
  readonly #idle = new BoundedMap<Origin<Job>>({ bytes: rememberedBytes, bytesOf: (name) => memoryOf(name) });
  readonly #clock: Clock;
  readonly #maxRequests: number;
  readonly #maxPerOrigin: number;
  #running = 0;
  /** The number of running requests to untrusted origins, which is at most half of all. */
  #untrusted = 0;
  readonly #untrustedOf = new Map<string, number>();
  /** About how long requests to untrusted origins take, in milliseconds. */
  #untrustedTakes = 20;

  /** `maxRequests`: maximum concurrent requests in all. `maxPerOrigin`: maximum concurrent requests to one origin. */
  constructor(clock: Clock, maxRequests: number, maxPerOrigin: number) {
    this.#clock = clock;
    this.#maxRequests = maxRequests;
    this.#maxPerOrigin = maxPerOrigin;
  }

  of(name: string): Origin<Job> {
    return this.#active.get(name) ?? this.#idle.get(name) ?? new Origin(name);
  }

  now(): Now {
    return { wall: this.#clock.now(), elapsed: this.#clock.elapsed() };
  }

  /** Applies the state of an origin from other processes, and notes the time of this read. */
  learn(origin: Origin<Job>, known: Known | undefined): void {
    const now = this.now();
    origin.askedAt = now.elapsed;
    if (known !== undefined) origin.learn(known, now, this.#maxPerOrigin);
    this.settle(origin);
  }

  add(origin: Origin<Job>, job: Job): void {
    origin.waiting.push(job);
    this.#active.set(origin.name, origin);
  }

  /** Removes and returns the jobs that wait. */
  takeAll(): readonly Job[] {
    return [...this.#active.values()].flatMap(({ waiting }) => waiting.splice(0));
  }

  beginPoll(): void {
    for (const origin of this.#active.values()) origin.deferred = 0;
  }

  /** Starts the next job that may run. */
  next(): Running<Job> | undefined {
    if (this.#running >= this.#maxRequests) return undefined;
    const elapsed = this.#clock.elapsed();
    const origin = this.#choose(elapsed);
    const job = origin?.waiting.shift();
    if (origin === undefined || job === undefined) return undefined;
    // The other origins take their turns first.
    this.#active.delete(origin.name);
    this.#active.set(origin.name, origin);
    return { job, origin, end: this.#begin(origin, job.task.owner, elapsed) };
  }

  /**
   * The origin whose turn it is. Among untrusted origins, it prefers the owner with the fewest requests to such origins, so
   * one owner's dead endpoints cannot starve another's.
   */
  #choose(elapsed: number): Origin<Job> | undefined {
    let best: Origin<Job> | undefined;
    let fewest = Infinity;
    for (const origin of this.#active.values()) {
      const { waiting, running, allowed, trusted } = origin;
      const [job] = waiting;
      if (job === undefined || running.length >= allowed || origin.openForMs(elapsed) > 0) continue;
      if (trusted) return best ?? origin;
      const own = this.#untrustedOf.get(job.task.owner) ?? 0;
      if (own >= fewest || this.#untrusted >= this.#maxUntrusted) continue;
      [best, fewest] = [origin, own];
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
      const { took } = result;
      origin.running.splice(origin.running.indexOf(since), 1);
      this.#running -= 1;
      if (!trusted) this.#countUntrusted(owner, -1);
      if (!trusted && took !== undefined) {
        this.#untrustedTakes += (likely(took, this.#untrustedTakes) - this.#untrustedTakes) / 8;
      }
      origin.ended(result, { since, most: this.#maxPerOrigin, ...this.now(), random: Math.random() });
    };
  }

  get #maxUntrusted(): number {
    return Math.max(1, this.#maxRequests >> 1);
  }

  #countUntrusted(owner: string, by: 1 | -1): void {
    this.#untrusted += by;
    const left = (this.#untrustedOf.get(owner) ?? 0) + by;
    if (left > 0) this.#untrustedOf.set(owner, left);
    else this.#untrustedOf.delete(owner);
  }

  /** About how long a job waits for its turn among `jobs` jobs of untrusted origins, in milliseconds. */
  turnAfter(jobs: number): number {
    return Math.ceil(Math.min(longestPause, Math.max(100, (jobs / this.#maxUntrusted) * this.#untrustedTakes)));
  }

  /** Moves an origin without jobs to the remembered origins. */
  settle(origin: Origin<Job>): void {
    if (origin.waiting.length > 0 || origin.running.length > 0) return;
    this.#active.delete(origin.name);
    origin.deferred = 0;
    this.#idle.set(origin.name, origin);
  }
}
