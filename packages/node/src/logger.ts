import process from "node:process";
import { styleText } from "node:util";
import type { Logger, LogFields } from "@parley/a2a/internal/base/index";
import { cut, escapeControls } from "@parley/a2a/internal/base/display";
import { limits, logText, shown, type LogStyle } from "@parley/a2a/internal/base/log-text";

const levels = ["debug", "info", "warn", "error"] as const;

/** A level of the log. Records of this level and of higher levels are logged. */
export type LogLevel = (typeof levels)[number];

/** The destination of log records: a Node stream, or any object with `write`. */
export interface LogStream {
  /** Writes text. */
  write(text: string): unknown;
  /** Whether it is a terminal. */
  readonly isTTY?: boolean;
  /** Bytes that wait to be written. */
  readonly writableLength?: number;
  /** Adds a listener for errors of the stream. */
  on?(event: "error", listener: () => void): unknown;
  /** The listeners for errors of the stream. */
  listeners?(event: "error"): readonly unknown[];
}

/** Options of `standardLogger()`. */
export interface StandardLoggerOptions {
  /** Default `"info"`. */
  readonly level?: LogLevel;
  /** Text for people, or lines of JSON. Default: text on a terminal, otherwise JSON. */
  readonly format?: "text" | "json";
  /** Default: standard error. */
  readonly stream?: LogStream;
  /** Whether text has colors. Default: on a terminal, unless `NO_COLOR` is set or `TERM` is `dumb`. */
  readonly colors?: boolean;
}

/** Maximum bytes that may wait in a stream that is read too slowly. Further records are dropped and counted. */
const waitingBytes = 1 << 20;

/** One function for all loggers, so that a stream gets this listener only once. */
function ignore(): void {}

function hasColours(stream: LogStream): boolean {
  const { NO_COLOR, TERM } = process.env;
  return stream.isTTY === true && (NO_COLOR === undefined || NO_COLOR === "") && TERM !== "dumb";
}

/**
 * A logger that writes to standard error: text for people on a terminal, otherwise lines of JSON with `time`, `level`, `message`,
 * the fields, and `cause` with its stack. Content of requests cannot control a terminal or look like another record. Long values
 * are cut, and a record has about 32,000 characters at most. The logger never throws, even if its stream is closed.
 *
 * Text has the agent and the end of the task's id before the message. Full ids follow when a task is created, on warnings, and on
 * errors. `parley logs` shows lines of JSON in the same way.
 */
export function standardLogger(options: StandardLoggerOptions = {}): Logger {
  const { level = "info", stream = process.stderr } = options;
  const text = (options.format ?? (stream.isTTY === true ? "text" : "json")) === "text";
  const colours = options.colors ?? hasColours(stream);
  let lost = 0;

  // A closed stream emits `error`, which ends the process without a listener.
  if (stream.listeners?.("error").includes(ignore) === false) stream.on?.("error", ignore);

  const style: LogStyle = (format, words) => (colours ? styleText(format, words, { validateStream: false }) : words);
  const put = (at: LogLevel, message: string, fields: LogFields): void => {
    try {
      const record = { time: new Date(), level: at, message, fields };
      stream.write(text ? logText(record, style) : jsonRecord(at, message, fields));
    } catch {
      // Nowhere else to log the error.
    }
  };
  const writer =
    (at: LogLevel): Logger["info"] =>
    (message, fields = {}) => {
      if ((stream.writableLength ?? 0) > waitingBytes) {
        lost++;
        return;
      }
      if (lost > 0) {
        put("warn", "Dropped log records because the stream was read too slowly", { records: lost });
        lost = 0;
      }
      put(at, message, fields);
    };
  const from = levels.indexOf(level);
  if (from === -1) {
    throw new TypeError(`level must be one of ${levels.join(", ")}; got ${JSON.stringify(level)}`);
  }
  const at = (each: LogLevel): Logger["info"] => (levels.indexOf(each) < from ? ignore : writer(each));
  return { debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error") };
}

function jsonRecord(level: LogLevel, message: string, fields: LogFields): string {
  const { cause, ...rest } = shown(fields);
  const head = { time: new Date().toISOString(), level, message: cut(message, limits.text) };
  return `${escapeControls(JSON.stringify({ ...head, ...rest, ...head, cause }))}\n`;
}
