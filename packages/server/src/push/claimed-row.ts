import {
  stateOf,
  type AppendOutcome,
  type DueFeature,
  type FeatureEffect,
  type FeatureState,
  type TaskKey,
} from "../store/index.ts";
import type { OutboxHost } from "./port.ts";
import {
  nextAgain,
  parkedFeature,
  pushFeature,
  readConfig,
  unclaimed,
  writeConfig,
  type StoredConfig,
} from "./stored.ts";

/** Computes the next config. If an operator changes the config before it is stored, this function is called again with the new one. */
export type Change = (config: StoredConfig) => StoredConfig;

const unchanged: Change = (config) => config;

/** Maximum attempts if an operator keeps changing the row. */
const maxTries = 20;

type Host = Pick<OutboxHost, "append" | "clock" | "holders" | "store">;

/** Claims, changes and releases the row of a config. */
export class ClaimedRow {
  readonly task: TaskKey;
  readonly key: string;
  readonly #host: Host;
  #row: FeatureState;
  #config: StoredConfig;
  /** The claim of this process. `since`: when the row was claimed or the claim extended, on the monotonic clock. */
  #claim: { readonly id: string; readonly since: number } | undefined;

  constructor(host: Host, { task, key, value, due }: DueFeature, config: StoredConfig) {
    this.task = task;
    this.key = key;
    this.#host = host;
    this.#row = { value, due };
    // An expired claim belongs to a dead process.
    this.#config = unclaimed(config);
  }

  /** The config without its claim. */
  get config(): StoredConfig {
    return this.#config;
  }

  get isClaimed(): boolean {
    return this.#claim !== undefined;
  }

  /** The age of the claim, in milliseconds. `Infinity`: not claimed. */
  get age(): number {
    return this.#claim === undefined ? Infinity : this.#host.clock.elapsed() - this.#claim.since;
  }

  /** Applies a change only in memory. Call it while the row is not claimed. */
  assume(change: Change): void {
    this.#config = change(this.#config);
  }

  /** Claims the row for `lasts` milliseconds, or extends its claim, and stores a change. `false`: the row was lost. */
  async hold(lasts: number, change: Change = unchanged): Promise<boolean> {
    const { clock, holders } = this.#host;
    const since = clock.elapsed();
    const id = this.#claim?.id ?? crypto.randomUUID();
    const due = this.now() + lasts;
    const claim = holders === undefined ? { claim: id } : { claim: id, holder: holders.own() };
    const outcome = await this.#change((config) => {
      const changed = change(config);
      return { config: changed, effects: [this.#set({ ...changed, ...claim }, due)] };
    });
    this.#claim = outcome.ok ? { id, since } : undefined;
    return outcome.ok;
  }

  /**
   * Releases the row with a change. `due`: absent if nothing is left to deliver. `expect`: the `seq` that the task must be
   * at. `stale`: the task has newer events, and nothing changed.
   */
  async release(
    due: number | undefined,
    change: Change = unchanged,
    expect?: number,
  ): Promise<"released" | "stale" | "lost"> {
    const outcome = await this.#change((config) => {
      const changed = change(config);
      const isWanted = due === undefined && nextAgain(changed) !== undefined;
      return { config: changed, effects: [this.#set(changed, isWanted ? this.now() : due)] };
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

  async park(change: Change): Promise<void> {
    await this.#change((config) => {
      const parked = { feature: parkedFeature, key: this.key, value: writeConfig(change(config)), due: this.now() };
      return { config, effects: [this.#removal(), { effect: "feature", op: "set", ...parked }] };
    });
    this.#claim = undefined;
  }

  /** Wall time in whole milliseconds. */
  now(): number {
    return Math.floor(this.#host.clock.now());
  }

  /** Stores a change. If an operator has changed the row but left its claim, applies the change to the stored row. */
  async #change(
    decide: (config: StoredConfig) => { readonly config: StoredConfig; readonly effects: readonly FeatureEffect[] },
    expect?: number,
  ): Promise<AppendOutcome> {
    for (let tries = 1; ; tries += 1) {
      const { config, effects } = decide(this.#config);
      const condition = expect === undefined ? {} : { expect };
      const outcome = await this.#host.append({ task: this.task, ...condition, records: [], effects });
      if (outcome.ok) {
        this.#config = config;
        const [set] = effects;
        if (set?.op === "set") this.#row = stateOf(set);
        return outcome;
      }
      if (outcome.reason !== "changed" || tries === maxTries || !(await this.#readAgain())) return outcome;
    }
  }

  /** Whether the row still has the claim of this process. */
  async #readAgain(): Promise<boolean> {
    if (this.#claim === undefined) return false;
    const rows = await this.#host.store.features(this.task, this.task.taskId, pushFeature);
    const row = rows.find(({ key }) => key === this.key);
    const config = row && readConfig(row.value);
    if (row === undefined || config?.claim !== this.#claim.id) return false;
    this.#row = stateOf(row);
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
