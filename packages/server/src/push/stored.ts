import { utf8Length } from "@parley/a2a/internal/base/index";
import { featureBounds } from "../store/index.ts";
import type { PushProblem, RefusedDelivery } from "./port.ts";

/* How a config is stored: as a row of a feature, with its task (docs/decisions/webhooks.md). */

/** The rows of configs. Each record of their task wakes those that are idle. */
export const pushFeature = "push";

/** The rows of configs that are parked. No record wakes them. Their `due` is the time at which they were parked. */
export const parkedFeature = "push.parked";

/** Most refused events that a row keeps. One more parks the config. */
export const maxRefused = 16;

/** The value of the row of a config, as JSON. Its key is the id of the config. */
export interface StoredConfig {
  /** The address that events are posted to. */
  readonly url: string;
  /** The version of the protocol that registered it, `Major.Minor`. */
  readonly version: string;
  /** URIs of the extensions that were active in the request that registered it: they are in its deliveries. Absent: none. */
  readonly extensions?: readonly string[];
  /** `authentication.scheme`, as it was given. */
  readonly scheme?: string;
  /** `token` and `authentication.credentials`, sealed: see `seal.ts`. Absent: it has neither. */
  readonly sealed?: string;
  /** When the config was created, in milliseconds since the Unix epoch: its place in lists. One that takes its place keeps it. */
  readonly created: number;
  /** Random, so that the deliveries of a config that is registered again have other ids. */
  readonly nonce: string;
  /** The `seq` of the log up to which events were delivered or refused. */
  readonly cursor: number;
  /** The generation of the task at the cursor. Absent: not known. */
  readonly generation?: number;
  /** The `seq` before the first chunk of the oldest artifact that may be incomplete at the cursor. Absent: the beginning of the log. */
  readonly chunks?: number;
  /** The state of the task at the cursor, which tells whether the next status is a change. Absent: not known. */
  readonly state?: string;
  /** How many deliveries have a number: the next one gets the number after it. */
  readonly sequence: number;
  /** How many events were delivered. */
  readonly delivered: number;
  /** How often the next event was tried without success. Absent: never. */
  readonly attempts?: number;
  /** The last failure of the next event. */
  readonly problem?: PushProblem;
  /** Events that the receiver refused, oldest first. */
  readonly refused?: readonly RefusedDelivery[];
  /**
   * The `seq` of refused events that an operator wants to be delivered once more, in this order, before the others. An operator
   * adds to it, and takes events out of `refused`, also while a process delivers: `claim` and `due` of the row stay. A process
   * that gets `changed` therefore reads the row again, and stores its result in it where its claim is still there.
   */
  readonly again?: readonly number[];
  /** The claim of the process that delivers, a random id. Absent: nobody does. The `due` of the row is when it ends. */
  readonly claim?: string;
  /** The process that has the claim, by its name in leases: where it is gone, the claim is nobody's. Absent: not known. */
  readonly holder?: string;
}

/* The value of the row of a config. */

/** How far a config has come, as `StoredConfig` has it. */
export type Position = Pick<StoredConfig, "cursor" | "state" | "generation" | "chunks">;

/** Reads a value. `undefined`: it is not that of a config. */
export function readConfig(value: string): StoredConfig | undefined {
  const config = JSON.parse(value) as Partial<StoredConfig> | null;
  const isConfig =
    typeof config === "object" &&
    config !== null &&
    typeof config.url === "string" &&
    typeof config.version === "string" &&
    typeof config.nonce === "string" &&
    [config.cursor, config.sequence, config.delivered].every(Number.isSafeInteger);
  return isConfig ? (config as StoredConfig) : undefined;
}

/** Writes a value. A store takes no larger one, so the oldest refused events are left out of one that is too large. */
export function writeConfig(config: StoredConfig): string {
  const value = JSON.stringify(config);
  const { refused = [], ...rest } = config;
  if (refused.length === 0 || utf8Length(value) <= featureBounds.value) return value;
  return writeConfig(refused.length === 1 ? rest : { ...rest, refused: refused.slice(1) });
}

/** The config without its claim. */
export function unclaimed({ claim: _, holder: __, ...config }: StoredConfig): StoredConfig {
  return config;
}

/** The config at another position. The failures of the event that was next do not count any more. */
export function moved(config: StoredConfig, position: Position): StoredConfig {
  const { state: _s, generation: _g, chunks: _c, attempts: _a, problem: _p, ...rest } = config;
  return { ...rest, ...position };
}
