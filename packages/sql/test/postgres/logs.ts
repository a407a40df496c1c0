import type { Logger } from "@parley/a2a/protocol";
import { collect } from "../../../../test/secrets.ts";

/** A logger that records its lines above `debug`. */
export function recorder(): { readonly lines: string[]; readonly logger: Logger } {
  const lines: string[] = [];
  const log = (message: string, fields?: unknown): void => {
    collect(message, fields);
    lines.push(message);
  };
  return { lines, logger: { debug: (message, fields) => collect(message, fields), info: log, warn: log, error: log } };
}
