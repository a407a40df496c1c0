import { utf8Length } from "@parley/a2a/internal/base/index";
import { featureBounds } from "../store/index.ts";
import type { PushProblem, RefusedDelivery } from "./port.ts";
import { storedJson, type StoredJson } from "@parley/a2a/internal/base/json";

/* How a config is stored: as a row of a feature, with its task (docs/decisions/webhooks.md). */

/** The rows of configs. Each record of the task makes idle configs due. */
export const pushFeature = "push";

/** The rows of parked configs. No record wakes them. `due` is the time when they were parked. */
export const parkedFeature = "push.parked";

/** Maximum refused events in a row. A further refused event parks the config. */
export const maxRefused = 16;

/** The value of a row, as JSON. Its key is the id of the config. */
export interface StoredConfig {
  readonly url: string;
  /** The protocol version of the request that registered the config, `Major.Minor`. */
  readonly version: string;
  /** URIs of the extensions that were active in the request that registered the config. */
  readonly extensions?: readonly string[] | undefined;
  /** `authentication.scheme`, as given. */
  readonly scheme?: string | undefined;
  /** `token` and `authentication.credentials`, sealed (`keys.ts`). */
  readonly sealed?: string | undefined;
  /** Creation time in milliseconds since the Unix epoch, which determines the position in lists. A replacement keeps it. */
  readonly created: number;
  /** Random value in the delivery ids, so that a config that is registered again has different ids. */
  readonly nonce: string;
  /** The `seq` up to which events were delivered or refused. */
  readonly cursor: number;
  /** The generation of the task at the cursor. Absent: unknown. */
  readonly generation?: number | undefined;
  /** The `seq` before the oldest artifact that may be incomplete at the cursor. Absent: the beginning of the log. */
  readonly chunks?: number | undefined;
  /** The state of the task at the cursor: the next status is a change if its state differs. Absent: unknown. */
  readonly state?: string | undefined;
  /** The number of the last delivery. */
  readonly sequence: number;
  readonly delivered: number;
  /** Failed attempts at the next event. */
  readonly attempts?: number;
  /** The last failure of the next event. */
  readonly problem?: PushProblem;
  /** Events that the receiver refused, oldest first. */
  readonly refused?: readonly RefusedDelivery[];
  /**
   * The `seq` of refused events that an operator wants delivered first, in this order. An operator may change `again` and `refused`
   * even during a delivery, but never `claim` and `due`. So a process that gets `changed` reads the row again, and stores its result if
   * the row still has its claim.
   */
  readonly again?: readonly number[];
  /** The random id of the claim, set while a process delivers. The claim expires at the `due` of the row. */
  readonly claim?: string;
  /** The lease name of the process that has the claim. If this process is dead, the claim is void. */
  readonly holder?: string;
}

export const configJson: StoredJson<StoredConfig> = storedJson();

/** The position of a config in the log. */
export type Position = Pick<StoredConfig, "cursor" | "state" | "generation" | "chunks">;

/** Reads the value of a row. `undefined`: the value is not a config. */
export function readConfig(value: string): StoredConfig | undefined {
  const config: StoredConfig | null = configJson.read(value);
  const isConfig =
    typeof config === "object" &&
    config !== null &&
    [config.url, config.version, config.nonce].every((each) => typeof each === "string") &&
    [config.cursor, config.sequence, config.delivered].every(Number.isSafeInteger);
  return isConfig ? config : undefined;
}

/** Writes the value of a row. If the value would be too large for a store, drops the oldest refused events. */
export function writeConfig(config: StoredConfig): string {
  const value = configJson.write(config);
  const { refused = [], ...rest } = config;
  if (refused.length === 0 || utf8Length(value) <= featureBounds.value) return value;
  return writeConfig(refused.length === 1 ? rest : { ...rest, refused: refused.slice(1) });
}

export function unclaimed({ claim: _, holder: __, ...config }: StoredConfig): StoredConfig {
  return config;
}

/** Moves the config to another position, and clears the failed attempts at its next event. */
export function moved(config: StoredConfig, position: Position): StoredConfig {
  const { state: _s, generation: _g, chunks: _c, attempts: _a, problem: _p, ...rest } = config;
  return { ...rest, ...position };
}

/** The refused event that an operator wants delivered next. */
export function nextAgain({ again = [], refused = [] }: StoredConfig): RefusedDelivery | undefined {
  const seq = again.find((each) => refused.some((event) => event.seq === each));
  return refused.find((event) => event.seq === seq);
}
