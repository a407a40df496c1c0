import { utf8Length } from "@parley/a2a/internal/base/index";
import { featureBounds } from "../store/index.ts";
import type { Position } from "./events.ts";
import type { StoredConfig } from "./stored.ts";

/* The value of the row of a config. */

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
