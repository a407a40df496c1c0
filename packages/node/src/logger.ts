import process from "node:process";
import { styleText } from "node:util";
import type { Logger, LogFields } from "@parley/a2a/internal/base/index";
import { cut, escapeControls } from "@parley/a2a/internal/base/display";

const levels = ["debug", "info", "warn", "error"] as const;

/** A level of the log. Records of this level and of higher levels are logged. */
export type LogLevel = (typeof levels)[number];

/** Where log records are written: a stream of Node, or any object with `write`. */
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

/** Most bytes that may wait in a stream that is read too slowly. Further records are counted and left out. */
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
 */
export function standardLogger(options: StandardLoggerOptions = {}): Logger {
  const { level = "info", stream = process.stderr } = options;
  const text = (options.format ?? (stream.isTTY === true ? "text" : "json")) === "text";
  const colours = options.colors ?? hasColours(stream);
  let lost = 0;

  // A closed stream emits `error`, which ends the process without a listener.
  if (stream.listeners?.("error").includes(ignore) === false) stream.on?.("error", ignore);

  const put = (at: LogLevel, message: string, fields: LogFields): void => {
    try {
      stream.write(text ? textRecord(at, message, fields, colours) : jsonRecord(at, message, fields));
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
        put("warn", "Log records were left out, since those before them were not read in time", { records: lost });
        lost = 0;
      }
      put(at, message, fields);
    };
  const from = levels.indexOf(level);
  if (from === -1) {
    throw new TypeError(`The log level ${String(level)} does not exist. Choose one of ${levels.join(", ")}`);
  }
  const at = (each: LogLevel): Logger["info"] => (levels.indexOf(each) < from ? ignore : writer(each));
  return { debug: at("debug"), info: at("info"), warn: at("warn"), error: at("error") };
}

function jsonRecord(level: LogLevel, message: string, fields: LogFields): string {
  const { cause, ...rest } = shown(fields);
  const head = { time: new Date().toISOString(), level, message: cut(message, limits.text) };
  return `${escapeControls(JSON.stringify({ ...head, ...rest, ...head, cause }))}\n`;
}

const labels = { debug: "dim", info: "cyan", warn: "yellow", error: "red" } as const;

/** A record as one line, and its cause as indented lines below it. */
function textRecord(level: LogLevel, message: string, fields: LogFields, colours: boolean): string {
  const style = (format: "dim" | "cyan" | "yellow" | "red", words: string): string =>
    colours ? styleText(format, words, { validateStream: false }) : words;
  const { cause, ...rest } = shown(fields);
  const time = style("dim", new Date().toTimeString().slice(0, 8));
  const words = Object.entries(rest).map(([name, value]) => ` ${style("dim", `${oneLine(name)}=`)}${word(value)}`);
  const line = `${time} ${style(labels[level], level.padEnd(5))} ${oneLine(cut(message, limits.text))}${words.join("")}\n`;
  return cause === undefined ? line : `${line}${causeLines(cause, "  ").join("\n")}\n`;
}

function shown(fields: LogFields): ReturnType<typeof shownFields> {
  try {
    return shownFields(fields);
  } catch {
    // A proxy in the fields can throw.
    return { unreadable: "the fields of this record cannot be shown" };
  }
}

/** A single word as it is, any other value as JSON. */
function word(value: Shown): string {
  return escapeControls(typeof value === "string" && /^[\w.:/@+-]+$/.test(value) ? value : JSON.stringify(value));
}

/** An error with its stack, its further members and its cause, each line indented. */
function causeLines(cause: Shown, indent: string): readonly string[] {
  if (typeof cause !== "object" || cause === null || Array.isArray(cause) || !("stack" in cause || "message" in cause))
    return [`${indent}${word(cause)}`];
  const { name, message, stack, cause: next, errors, ...rest } = cause;
  const told = typeof stack === "string" ? stack.split("\n") : [word(name ?? "Error"), word(message ?? "")];
  return [
    ...told.map((line) => `${indent}${escapeControls(line)}`),
    ...Object.entries(rest).map(([member, value]) => `${indent}  ${oneLine(member)}: ${word(value)}`),
    ...(next === undefined ? [] : [`${indent}caused by:`, ...causeLines(next, `${indent}  `)]),
    ...(Array.isArray(errors)
      ? errors.flatMap((each) => [`${indent}one of:`, ...causeLines(each, `${indent}  `)])
      : []),
  ];
}

/* Values in log records. Content of requests must neither control a terminal nor fill a disk. */

function oneLine(text: string): string {
  return escapeControls(text.replace(/\n\s*/g, " "));
}

/** Limits of a record: its characters, those of one text and of one stack, the members of a list or object, and the nesting. */
const limits = { record: 32_000, text: 2_000, stack: 8_000, members: 50, depth: 6 };

/** A JSON value within the limits. */
type Shown = string | number | boolean | null | Shown[] | { readonly [name: string]: Shown };

/**
 * The fields of a record as JSON. Long texts, lists and objects are cut, errors have their stacks, members and causes, and values
 * that JSON does not have become text. Getters and `toJSON` are not called.
 */
function shownFields(fields: Readonly<Record<string, unknown>>): Readonly<Record<string, Shown>> {
  return new Walk().object(fields, 0);
}

/** Converts one record, and counts the characters that are left for it. */
class Walk {
  #left = limits.record;

  object(value: object, depth: number, without: readonly string[] = []): Record<string, Shown> {
    const entries: [string, Shown][] = [];
    for (const name in value) {
      if (without.includes(name)) continue;
      if (entries.length === limits.members || this.#left <= 0) {
        entries.push(["…", "more is left out"]);
        break;
      }
      const member: unknown = Object.getOwnPropertyDescriptor(value, name)?.value;
      if (member !== undefined) entries.push([this.#take(name, 100), this.#value(member, depth + 1)]);
    }
    return Object.fromEntries(entries);
  }

  #value(value: unknown, depth: number): Shown {
    if (typeof value === "string") return this.#take(value, limits.text);
    if (typeof value === "boolean" || value === null) return value;
    if (typeof value === "number" && Number.isFinite(value)) return value;
    if (typeof value === "number" || typeof value === "bigint" || typeof value === "symbol") {
      return this.#take(String(value), 100);
    }
    if (typeof value === "function") return `(function ${this.#take(value.name, 100)})`;
    if (typeof value !== "object") return "undefined";
    if (depth >= limits.depth) return "…";
    if (value instanceof Error) return this.#error(value, depth);
    if (Array.isArray(value)) return this.#list(value, depth);
    if (ArrayBuffer.isView(value)) return `(${value.byteLength} bytes)`;
    if (value instanceof Date) return Number.isNaN(value.getTime()) ? "Invalid Date" : value.toISOString();
    return this.object(value, depth);
  }

  #list(values: readonly unknown[], depth: number): Shown {
    const shown: Shown[] = [];
    for (const value of values) {
      if (shown.length === limits.members || this.#left <= 0) {
        shown.push(`… (${values.length - shown.length} more)`);
        break;
      }
      shown.push(this.#value(value, depth + 1));
    }
    return shown;
  }

  #error(error: Error, depth: number): Shown {
    const { name, message, stack, cause } = error;
    const own = Object.entries(this.object(error, depth, ["name", "message", "stack", "cause", "errors"]));
    return {
      name: this.#take(String(name), 100),
      message: this.#take(String(message), limits.text),
      ...Object.fromEntries(own.filter(([, shown]) => !isEmpty(shown))),
      ...(typeof stack === "string" && { stack: this.#take(stack, limits.stack) }),
      ...(cause !== undefined && { cause: this.#value(cause, depth + 1) }),
      ...(error instanceof AggregateError && { errors: this.#list(error.errors, depth + 1) }),
    };
  }

  #take(text: string, length: number): string {
    const taken = cut(text, Math.max(0, Math.min(length, this.#left)));
    this.#left -= taken.length;
    return taken;
  }
}

function isEmpty(shown: Shown): boolean {
  return typeof shown === "object" && shown !== null && Object.keys(shown).length === 0;
}
