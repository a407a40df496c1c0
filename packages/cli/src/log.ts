import type { Logger } from "@parley/a2a";
import { standardLogger, type LogLevel, type LogStream } from "@parley/node";
import type { Io } from "./io.ts";
import type { LogFormat } from "./options.ts";
import { hasColours } from "./output/style.ts";

/** Log records on standard error. */
export function logTo(io: Io, level: LogLevel, format: LogFormat): Logger {
  const { stderr } = io;
  const stream: LogStream = { write: (text) => stderr.write(text), isTTY: stderr.terminal };
  return standardLogger({ level, format, stream, colors: hasColours(stderr, io.env) });
}
