import type { OutboxHost } from "./port.ts";
import { dueAt } from "./rescue.ts";
import { readConfig } from "./row.ts";
import { pushFeature } from "./stored.ts";

const pageSize = 256;
/** Rows that one look reads at most. The claims of others end by themselves. */
const most = 4_096;

/** Finds rows that were claimed by processes which are gone, so that their events do not wait until the claims end. */
export class LostClaims {
  readonly #host: Pick<OutboxHost, "agents" | "append" | "clock" | "holders" | "store">;
  readonly #longest: number;
  #isDue = true;

  /** `longest`: the longest claim, in milliseconds. */
  constructor(host: OutboxHost, longest: number) {
    this.#host = host;
    this.#longest = longest;
  }

  /** Some process may be gone. */
  expect(): void {
    this.#isDue = true;
  }

  /** Makes these rows due, where a process may be gone. */
  async look(stopping: () => boolean): Promise<void> {
    if (!this.#isDue) return;
    this.#isDue = false;
    try {
      await this.#giveBack(stopping);
    } catch (cause) {
      // The next look tries it again.
      this.#isDue = true;
      throw cause;
    }
  }

  async #giveBack(stopping: () => boolean): Promise<void> {
    const { store, agents, clock, append, holders } = this.#host;
    if (holders === undefined) return;
    const now = Math.floor(clock.now());
    const until = Math.ceil(now + this.#longest);
    let after = now;
    for (let read = 0; read < most && !stopping(); read += pageSize) {
      const rows = await store.dueFeatures({ feature: pushFeature, agents, now: until, after, limit: pageSize });
      const lost = rows.filter(({ value }) => {
        const { claim, holder } = readConfig(value) ?? {};
        return claim !== undefined && holder !== undefined && holders.isLost(holder);
      });
      // Others may find them as well: one of them changes the row.
      await Promise.all(lost.map((row) => append(dueAt(row, now))));
      if (rows.length < pageSize) return;
      // There may be more with the same time.
      const last = rows.at(-1)?.due ?? until;
      after = last - 1 > after ? last - 1 : last;
    }
  }
}
