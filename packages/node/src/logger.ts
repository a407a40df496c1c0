import process from "node:process";
import { styleText } from "node:util";
import type { Logger, LogFields } from "@parley/a2a";
import { cut, oneLine, shownFields, visible, type Shown } from "./log-text.ts";

const levels = ["debug", "info", "warn", "error"] as const;

/** How much is logged: records of this level and those above it. */
export type LogLevel = (typeof levels)[number];

/** Where log records go: a stream of Node, or anything that takes text. */
export interface LogStream {
  /** Writes text. */
  write(text: string): unknown;
  /** Whether a person looks at it. */
  readonly isTTY?: boolean;
  /** Bytes that wait within it. */
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
  /** Text for people, or one JSON document a line. Default: text on a terminal, JSON elsewhere. */
  readonly format?: "text" | "json";
  /** Default: standard error. */
  readonly stream?: LogStream;
  /** Whether text has colours. Default: on a terminal, unless `NO_COLOR` is set or `TERM` is `dumb`. */
  readonly colors?: boolean;
}

/** What may wait in a stream that is read too slowly, in bytes: further records are counted and left out. */
const waitingBytes = 1 << 20;

/** One function for all loggers, so that a stream has it once. */
function ignore(): void {}

function hasColours(stream: LogStream): boolean {
  const { NO_COLOR, TERM } = process.env;
  return stream.isTTY === true && (NO_COLOR === undefined || NO_COLOR === "") && TERM !== "dumb";
}

/**
 * A logger that writes to standard error: text for people on a terminal, elsewhere one JSON document a line with `time`,
 * `level`, `message`, the fields, and `cause` with its stack. Content of requests cannot control a terminal or look like a
 * record of its own, long values are cut, and a record has at most some 32,000 characters. It never throws, also where
 * its stream is closed.
 */
export function standardLogger(options: StandardLoggerOptions = {}): Logger {
  const { level = "info", stream = process.stderr } = options;
  const text = (options.format ?? (stream.isTTY === true ? "text" : "json")) === "text";
  const colours = options.colors ?? hasColours(stream);
  let lost = 0;

  // A closed stream emits `error`, which ends the process where there is no listener.
  if (stream.listeners?.("error").includes(ignore) === false) stream.on?.("error", ignore);

  const put = (at: LogLevel, message: string, fields: LogFields): void => {
    try {
      stream.write(text ? textRecord(at, message, fields, colours) : jsonRecord(at, message, fields));
    } catch {
      // There is nowhere left to tell it.
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
        put("warn", "Log records were left out, since those before them were not read in time", { records: lost });
        lost = 0;
      }
      put(at, message, fields);
    };
  const from = levels.indexOf(level);
  if (from === -1) throw new TypeError(`A log level is one of ${levels.join(", ")}, and not ${String(level)}`);
  const [debug, info, warn, error] = levels.map((at, i) => (i < from ? ignore : writer(at)));
  return { debug, info, warn, error } as Logger;
}

function jsonRecord(level: LogLevel, message: string, fields: LogFields): string {
  const { cause, ...rest } = shown(fields);
  const head = { time: new Date().toISOString(), level, message: cut(message) };
  return `${visible(JSON.stringify({ ...head, ...rest, ...head, cause }))}\n`;
}

const labels = { debug: "dim", info: "cyan", warn: "yellow", error: "red" } as const;

/** One line, and below it, indented, what caused it. */
function textRecord(level: LogLevel, message: string, fields: LogFields, colours: boolean): string {
  const style = (format: "dim" | "cyan" | "yellow" | "red", words: string): string =>
    colours ? styleText(format, words, { validateStream: false }) : words;
  const { cause, ...rest } = shown(fields);
  const time = style("dim", new Date().toTimeString().slice(0, 8));
  const words = Object.entries(rest).map(([name, value]) => ` ${style("dim", `${oneLine(name)}=`)}${word(value)}`);
  const line = `${time} ${style(labels[level], level.padEnd(5))} ${oneLine(cut(message))}${words.join("")}\n`;
  return cause === undefined ? line : `${line}${causeLines(cause, "  ").join("\n")}\n`;
}

function shown(fields: LogFields): ReturnType<typeof shownFields> {
  try {
    return shownFields(fields);
  } catch {
    // An object that throws when it is looked at.
    return { unreadable: "the fields of this record cannot be shown" };
  }
}

/** A value as it is where that is one word, else as JSON. */
function word(value: Shown): string {
  return visible(typeof value === "string" && /^[\w.:/@+-]+$/.test(value) ? value : JSON.stringify(value));
}

/** An error with its stack, what else it says, and what caused it, each line indented. */
function causeLines(cause: Shown, indent: string): readonly string[] {
  if (typeof cause !== "object" || cause === null || !("stack" in cause || "message" in cause))
    return [`${indent}${word(cause)}`];
  const { name, message, stack, cause: next, errors, ...rest } = cause as Readonly<Record<string, Shown>>;
  const told = typeof stack === "string" ? stack.split("\n") : [word(name ?? "Error"), word(message ?? "")];
  return [
    ...told.map((line) => `${indent}${visible(line)}`),
    ...Object.entries(rest).map(([member, value]) => `${indent}  ${oneLine(member)}: ${word(value)}`),
    ...(next === undefined ? [] : [`${indent}caused by:`, ...causeLines(next, `${indent}  `)]),
    ...(Array.isArray(errors)
      ? (errors as readonly Shown[]).flatMap((each) => [`${indent}one of:`, ...causeLines(each, `${indent}  `)])
      : []),
  ];
}
