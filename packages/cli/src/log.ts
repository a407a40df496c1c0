import type { Logger } from "@parley/a2a/internal/base/index";
import type { LogLevel, LogStream } from "@parley/node";
import type { Io } from "./io.ts";
import { hasColours } from "./output/text.ts";

/** Levels of `parley serve --log-level`, the most verbose first. */
export const logLevels = ["debug", "info", "warn", "error", "off"] as const;
export const logFormats = ["text", "json"] as const;
export type LogFormat = (typeof logFormats)[number];

/** A logger that writes to standard error. */
export async function logTo(io: Io, level: LogLevel, format: LogFormat): Promise<Logger> {
  // Loaded only on request: the module of the logger loads the server as well.
  const { standardLogger } = await import("@parley/node");
  const { stderr } = io;
  const stream: LogStream = { write: (text) => stderr.write(text), isTTY: stderr.terminal };
  return standardLogger({ level, format, stream, colors: hasColours(stderr, io.env) });
}
