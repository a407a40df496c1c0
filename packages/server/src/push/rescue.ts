import type { DueFeature, TaskAppend } from "../store/index.ts";
import type { OutboxHost } from "./port.ts";
import { pushFeature, readConfig, unclaimed, writeConfig } from "./stored.ts";

/** How often to search for rows that are due too late, in milliseconds. */
const searchMs = 10 * 60_000;
/** If the wall clock falls behind the monotonic clock by more than this, in milliseconds, it was set back. */
const setBackMs = 1_000;
const pageSize = 256;
/** Maximum claimed rows that one poll reads. The next poll continues there. */
const maxClaimed = 4_096;

/** The item that makes a row due at another time, and removes its claim. */
export function dueAt({ task, key, value, due }: DueFeature, to: number): TaskAppend {
  const config = readConfig(value);
  const kept = config === undefined ? value : writeConfig(unclaimed(config));
  const row = { feature: pushFeature, key, value: kept, due: Math.floor(to), if: { value, due } };
  return { task, records: [], effects: [{ effect: "feature", op: "set", ...row }] };
}

/** Maximum times of a row, in milliseconds. */
interface LongestTimes {
  /** How long a row may be claimed. */
  readonly claimMs: number;
  /** How long a row may be claimed or deferred. */
  readonly deferralMs: number;
}

/** Finds rows that would be delivered too late, and makes them due now. */
export class Rescue {
  readonly #host: Pick<OutboxHost, "agents" | "append" | "clock" | "holders" | "store">;
  readonly #longest: LongestTimes;
  readonly #stopping: () => boolean;
  #nextSearch = -Infinity;
  /** Wall time minus monotonic time at the last poll. */
  #offset: number;
  #mayHaveLost = true;
  /** The due time after which the next poll continues to search for lost claims. */
  #claimedAfter: number | undefined;

  constructor(host: OutboxHost, longest: LongestTimes, stopping: () => boolean) {
    this.#host = host;
    this.#longest = longest;
    this.#stopping = stopping;
    this.#offset = host.clock.now() - host.clock.elapsed();
  }

  /** Makes the next poll search for claims of dead processes. */
  expectLost(): void {
    this.#mayHaveLost = true;
  }

  /** Makes late rows due now. Resolves to whether there are more rows to check. */
  async poll(): Promise<boolean> {
    await this.#pollDeferred();
    if (this.#claimedAfter === undefined) {
      if (!this.#mayHaveLost) return false;
      this.#mayHaveLost = false;
    }
    try {
      this.#claimedAfter = await this.#releaseLost(this.#claimedAfter);
      return this.#claimedAfter !== undefined || this.#mayHaveLost;
    } catch (cause) {
      // The next poll retries.
      this.#mayHaveLost = true;
      throw cause;
    }
  }

  /**
   * If the clock was set back, some rows are due too late (docs/decisions/feature-effects.md). Makes these rows due now: unclaimed
   * rows that were due before the clock was set, and rows whose `due` is later than any claim or wait could end.
   */
  async #pollDeferred(): Promise<void> {
    const { clock } = this.#host;
    const offset = clock.now() - clock.elapsed();
    const lost = this.#offset - offset;
    const now = Math.floor(clock.now());
    // Stores take whole milliseconds, but the monotonic clock has fractions.
    if (lost > setBackMs) await this.#bringBack(now, now, Math.ceil(now + lost));
    // Set only now, so that the next poll finds the rows if the store fails.
    this.#offset = offset;
    if (clock.elapsed() < this.#nextSearch) return;
    this.#nextSearch = clock.elapsed() + searchMs;
    await this.#bringBack(now, now + this.#longest.deferralMs, Infinity);
  }

  /** Makes rows due now that are due later than `from`, and not later than `until`. */
  async #bringBack(now: number, from: number, until: number): Promise<void> {
    for (let after = from, more = true; more && !this.#stopping();) {
      const rows = await this.#page(after, until);
      const free = rows.filter(({ value }) => until === Infinity || readConfig(value)?.claim === undefined);
      await Promise.all(free.map((row) => this.#host.append(dueAt(row, now))));
      more = rows.length === pageSize;
      if (free.length === 0) after = rows.at(-1)?.due ?? after;
    }
  }

  /** Releases rows whose claims belong to dead processes. Resolves to the `due` after which the next poll continues. */
  async #releaseLost(from: number | undefined): Promise<number | undefined> {
    const { clock, append, holders } = this.#host;
    if (holders === undefined) return undefined;
    const now = Math.floor(clock.now());
    const until = Math.ceil(now + this.#longest.claimMs);
    let after = Math.max(now, from ?? now);
    for (let read = 0; read < maxClaimed && !this.#stopping(); read += pageSize) {
      const rows = await this.#page(after, until);
      const lost = rows.filter(({ value }) => {
        const { claim, holder } = readConfig(value) ?? {};
        return claim !== undefined && holder !== undefined && holders.isLost(holder);
      });
      // Other processes may find the same rows, but each row is changed only once.
      await Promise.all(lost.map((row) => append(dueAt(row, now))));
      if (rows.length < pageSize) return undefined;
      // There may be more rows with the same time.
      const last = rows.at(-1)?.due ?? until;
      after = last - 1 > after ? last - 1 : last;
    }
    return this.#stopping() ? undefined : after;
  }

  #page(after: number, until: number): Promise<readonly DueFeature[]> {
    const { store, agents } = this.#host;
    return store.dueFeatures({ feature: pushFeature, agents, now: until, after, limit: pageSize });
  }
}
