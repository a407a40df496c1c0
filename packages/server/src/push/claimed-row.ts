import type { Clock } from "@parley/a2a/internal/base/index";
import type { AppendOutcome, DueFeature, FeatureEffect, FeatureState, Store, TaskKey } from "../store/index.ts";
import type { OutboxHost } from "./port.ts";
import { parkedFeature, pushFeature, readConfig, type StoredConfig, unclaimed, writeConfig } from "./stored.ts";

/** What becomes of a config. It is called again where an operator changed the config meanwhile. */
export type Change = (config: StoredConfig) => StoredConfig;

/** Most repetitions where an operator changes the row in between. */
const maxTries = 20;

/** The row of a config in the hands of this process: it is claimed, changed and given back. */
export class ClaimedRow {
  readonly task: TaskKey;
  readonly key: string;
  readonly #store: Pick<Store, "features">;
  readonly #append: OutboxHost["append"];
  readonly #clock: Clock;
  readonly #holders: OutboxHost["holders"];
  /** The row as it is stored. */
  #row: FeatureState;
  #config: StoredConfig;
  /** The claim of this process, and when it was made or extended, on the monotonic clock. */
  #claim: { readonly id: string; readonly since: number } | undefined;

  constructor(
    { store, append, clock, holders }: Pick<OutboxHost, "append" | "clock" | "holders" | "store">,
    { task, key, value, due }: DueFeature,
    config: StoredConfig,
  ) {
    this.task = task;
    this.key = key;
    this.#store = store;
    this.#append = append;
    this.#clock = clock;
    this.#holders = holders;
    this.#row = { value, due };
    // A claim whose time is over is that of a process that died.
    this.#config = unclaimed(config);
  }

  /** The config without its claim. */
  get config(): StoredConfig {
    return this.#config;
  }

  get isClaimed(): boolean {
    return this.#claim !== undefined;
  }

  /** How long ago it was claimed, in milliseconds. `Infinity`: it is not. */
  get age(): number {
    return this.#claim === undefined ? Infinity : this.#clock.elapsed() - this.#claim.since;
  }

  /** Goes on with a change that is not stored, while the row is not claimed. */
  assume(change: Change): void {
    this.#config = change(this.#config);
  }

  /** Claims the row for so many milliseconds, or extends its claim, and stores a change. `false`: the row is not ours any more. */
  async hold(lasts: number, change: Change = same): Promise<boolean> {
    const since = this.#clock.elapsed();
    const id = this.#claim?.id ?? crypto.randomUUID();
    const due = this.now() + lasts;
    const claim = this.#holders === undefined ? { claim: id } : { claim: id, holder: this.#holders.own() };
    const outcome = await this.#change((config) => {
      const changed = change(config);
      return { config: changed, effects: [this.#set({ ...changed, ...claim }, due)] };
    });
    this.#claim = outcome.ok ? { id, since } : undefined;
    return outcome.ok;
  }

  /**
   * Gives the row back with a change. `due`: absent where nothing is left to deliver. `expect`: the `seq` that the task must be at.
   * `stale`: the task is further, and nothing changed.
   */
  async release(
    due: number | undefined,
    change: Change = same,
    expect?: number,
  ): Promise<"released" | "stale" | "lost"> {
    const outcome = await this.#change((config) => {
      const changed = change(config);
      // An operator wants a refused event to be tried again.
      const rest = due === undefined && nextAgain(changed) !== undefined ? this.now() : due;
      return { config: changed, effects: [this.#set(changed, rest)] };
    }, expect);
    if (!outcome.ok && outcome.reason === "stale") return "stale";
    this.#claim = undefined;
    return outcome.ok ? "released" : "lost";
  }

  /** Deletes the config. */
  async remove(): Promise<void> {
    await this.#change((config) => ({ config, effects: [this.#removal()] }));
    this.#claim = undefined;
  }

  /** Parks the config with a change. */
  async park(change: Change): Promise<void> {
    await this.#change((config) => {
      const parked = { feature: parkedFeature, key: this.key, value: writeConfig(change(config)), due: this.now() };
      return { config, effects: [this.#removal(), { effect: "feature", op: "set", ...parked }] };
    });
    this.#claim = undefined;
  }

  /** Wall time in whole milliseconds. */
  now(): number {
    return Math.floor(this.#clock.now());
  }

  /** Stores a change. An operator changes rows and leaves their claim: then the change is made to what is stored. */
  async #change(
    decide: (config: StoredConfig) => { readonly config: StoredConfig; readonly effects: readonly FeatureEffect[] },
    expect?: number,
  ): Promise<AppendOutcome> {
    for (let tries = 1; ; tries += 1) {
      const { config, effects } = decide(this.#config);
      const condition = expect === undefined ? {} : { expect };
      const outcome = await this.#append({ task: this.task, ...condition, records: [], effects });
      if (outcome.ok) {
        this.#config = config;
        const [set] = effects;
        if (set?.op === "set")
          this.#row = set.due === undefined ? { value: set.value } : { value: set.value, due: set.due };
        return outcome;
      }
      if (outcome.reason !== "changed" || tries === maxTries || !(await this.#readAgain())) return outcome;
    }
  }

  /** Whether the row still has the claim of this process. */
  async #readAgain(): Promise<boolean> {
    if (this.#claim === undefined) return false;
    const rows = await this.#store.features(this.task, this.task.taskId, pushFeature);
    const row = rows.find(({ key }) => key === this.key);
    const config = row && readConfig(row.value);
    if (row === undefined || config?.claim !== this.#claim.id) return false;
    this.#row = row.due === undefined ? { value: row.value } : { value: row.value, due: row.due };
    this.#config = unclaimed(config);
    return true;
  }

  #set(config: StoredConfig, due: number | undefined): FeatureEffect {
    const value = writeConfig(config);
    const set = { effect: "feature", op: "set", feature: pushFeature, key: this.key, value, if: this.#row } as const;
    return due === undefined ? set : { ...set, due };
  }

  #removal(): FeatureEffect {
    return { effect: "feature", op: "delete", feature: pushFeature, key: this.key, if: this.#row };
  }
}

function same(config: StoredConfig): StoredConfig {
  return config;
}

/** The refused event that an operator wants to be tried again next. */
export function nextAgain({
  again = [],
  refused = [],
}: StoredConfig): NonNullable<StoredConfig["refused"]>[number] | undefined {
  for (const seq of again) {
    const found = refused.find((each) => each.seq === seq);
    if (found !== undefined) return found;
  }
  return undefined;
}
