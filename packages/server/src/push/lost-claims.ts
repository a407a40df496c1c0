import type { OutboxHost } from "./port.ts";
import { dueAt } from "./rescue.ts";
import { readConfig } from "./row.ts";
import { pushFeature } from "./stored.ts";

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
