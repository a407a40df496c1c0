import type { DueFeature, TaskAppend } from "../store/index.ts";
import type { OutboxHost } from "./port.ts";
import { pushFeature, readConfig, unclaimed, writeConfig } from "./stored.ts";

/** How often rows are looked for that are due too late, in milliseconds. */
const interval = 10 * 60_000;
/** The wall clock was set back where it lost more than this against the monotonic clock, in milliseconds. */
const setBack = 1_000;
const rescuedPage = 64;

/** What sets a row due at another time, as it is. The claim of a process that died is taken out. */
export function dueAt({ task, key, value, due }: DueFeature, to: number): TaskAppend {
  const config = readConfig(value);
  const kept = config === undefined ? value : writeConfig(unclaimed(config));
  const row = { feature: pushFeature, key, value: kept, due: Math.floor(to), if: { value, due } };
  return { task, records: [], effects: [{ effect: "feature", op: "set", ...row }] };
}

/**
 * Finds rows that the clock, set back since, has put off too far (docs/decisions/feature-effects.md). Rows without a claim that
 * were due by the clock before are due now, and so is each row that is due later than any claim or wait ends.
 */
export class Rescue {
  readonly #host: Pick<OutboxHost, "agents" | "append" | "clock" | "store">;
  readonly #longest: number;
  #next = -Infinity;
  /** Wall time minus monotonic time, when it was last looked at. */
  #offset: number;

  /** `longest`: the longest time for which a row is claimed or put off, in milliseconds. */
  constructor(host: OutboxHost, longest: number) {
    this.#host = host;
    this.#longest = longest;
    this.#offset = host.clock.now() - host.clock.elapsed();
  }

  async look(stopping: () => boolean): Promise<void> {
    const { clock } = this.#host;
    const offset = clock.now() - clock.elapsed();
    const lost = this.#offset - offset;
    const now = Math.floor(clock.now());
    // Stores take whole milliseconds, and the monotonic clock has parts of them.
    if (lost > setBack) await this.#bringBack({ now, after: now, until: Math.ceil(now + lost), stopping });
    // Not before: where the store fails, the next look finds the rows.
    this.#offset = offset;
    if (clock.elapsed() < this.#next) return;
    this.#next = clock.elapsed() + interval;
    await this.#bringBack({ now, after: now + this.#longest, until: Infinity, stopping });
  }

  /** Makes rows due now that are due after one time and until another. */
  async #bringBack(range: {
    readonly now: number;
    readonly after: number;
    readonly until: number;
    readonly stopping: () => boolean;
  }): Promise<void> {
    const { store, agents, append } = this.#host;
    const { now, until, stopping } = range;
    for (let { after } = range, more = true; more && !stopping();) {
      const rows = await store.dueFeatures({ feature: pushFeature, agents, now: until, after, limit: rescuedPage });
      const free = rows.filter(({ value }) => until === Infinity || readConfig(value)?.claim === undefined);
      await Promise.all(free.map((row) => append(dueAt(row, now))));
      more = rows.length === rescuedPage;
      if (free.length === 0) after = rows.at(-1)?.due ?? after;
    }
  }
}

const pageSize = 256;
/** Rows that one look reads at most. The next one goes on with the others. */
const most = 4_096;

/** Finds rows that were claimed by processes which are gone, so that their events do not wait until the claims end. */
export class LostClaims {
  readonly #host: Pick<OutboxHost, "agents" | "append" | "clock" | "holders" | "store">;
  readonly #longest: number;
  #isDue = true;
  /** After which time the next look goes on. */
  #after: number | undefined;

  /** `longest`: the longest claim, in milliseconds. */
  constructor(host: OutboxHost, longest: number) {
    this.#host = host;
    this.#longest = longest;
  }

  /** Some process may be gone. */
  expect(): void {
    this.#isDue = true;
  }

  /** Makes these rows due, where a process may be gone. Whether there are more rows to look at. */
  async look(stopping: () => boolean): Promise<boolean> {
    if (this.#after === undefined) {
      if (!this.#isDue) return false;
      this.#isDue = false;
    }
    try {
      this.#after = await this.#giveBack(this.#after, stopping);
      return this.#after !== undefined || this.#isDue;
    } catch (cause) {
      // The next look tries it again.
      this.#isDue = true;
      throw cause;
    }
  }

  /** Where the next look goes on, if there are more rows. */
  async #giveBack(from: number | undefined, stopping: () => boolean): Promise<number | undefined> {
    const { store, agents, clock, append, holders } = this.#host;
    if (holders === undefined) return undefined;
    const now = Math.floor(clock.now());
    const until = Math.ceil(now + this.#longest);
    let after = Math.max(now, from ?? now);
    for (let read = 0; read < most && !stopping(); read += pageSize) {
      const rows = await store.dueFeatures({ feature: pushFeature, agents, now: until, after, limit: pageSize });
      const lost = rows.filter(({ value }) => {
        const { claim, holder } = readConfig(value) ?? {};
        return claim !== undefined && holder !== undefined && holders.isLost(holder);
      });
      // Others may find them as well: one of them changes the row.
      await Promise.all(lost.map((row) => append(dueAt(row, now))));
      if (rows.length < pageSize) return undefined;
      // There may be more with the same time.
      const last = rows.at(-1)?.due ?? until;
      after = last - 1 > after ? last - 1 : last;
    }
    return stopping() ? undefined : after;
  }
}
