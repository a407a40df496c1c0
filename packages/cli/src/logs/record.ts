import { BoundedMap, memoryOf } from "@parley/a2a/internal/base/bounded-map";
import { cut, escapeControls, plain } from "@parley/a2a/internal/base/display";
import { limits, logText, shortIdLength } from "@parley/a2a/internal/base/log-text";
import type { LogLevel } from "@parley/node";
import { byteSize, lineLevels, type Style } from "../output/text.ts";
import type { Line } from "./lines.ts";

/* Parses a log line as a record, filters it, and shows it. */

/** A line that is JSON. */
export interface JsonRecord {
  /** The JSON. */
  readonly json: string;
  /** Text that a tool put before the JSON, such as the name of a container or a time. */
  readonly prefix: string;
  readonly fields: Readonly<Record<string, unknown>>;
  readonly level: LogLevel | undefined;
  /** In milliseconds since the Unix epoch. */
  readonly time: number | undefined;
}

/** Maximum length of a prefix, in characters. */
const maxPrefix = 200;

/** Reads a line. `undefined`: it has no JSON object, or is too long to tell. */
export function recordOf({ text, leftOut }: Line): JsonRecord | undefined {
  const at = text.slice(0, maxPrefix).indexOf("{");
  if (at === -1 || leftOut > 0) return undefined;
  const json = text.slice(at).trim();
  try {
    const value: unknown = JSON.parse(json);
    if (typeof value !== "object" || value === null) return undefined;
    const fields: Readonly<Record<string, unknown>> = Object.fromEntries(Object.entries(value));
    const level = levelOf(fields["level"]);
    return { json, prefix: text.slice(0, at), fields, level, time: timeOf(fields["time"] ?? fields["timestamp"]) };
  } catch {
    return undefined;
  }
}

/** Levels of other loggers: the numbers of pino, and further names. */
function levelOf(level: unknown): LogLevel | undefined {
  if (typeof level === "number") return level >= 50 ? "error" : level >= 40 ? "warn" : level >= 30 ? "info" : "debug";
  if (typeof level !== "string") return undefined;
  const name = level.toLowerCase();
  const others: Readonly<Record<string, LogLevel>> = { trace: "debug", warning: "warn", fatal: "error" };
  return lineLevels.find((each) => each === name) ?? (Object.hasOwn(others, name) ? others[name] : undefined);
}

function timeOf(time: unknown): number | undefined {
  const value = typeof time === "number" ? time : typeof time === "string" ? Date.parse(time) : Number.NaN;
  return Number.isNaN(new Date(value).getTime()) ? undefined : value;
}

/** Which records are wanted. All conditions must hold. */
export interface Wanted {
  readonly task?: string;
  readonly context?: string;
  /** A trace id in lower case. */
  readonly trace?: string;
  readonly level?: LogLevel;
  /** ISO 8601. */
  readonly since?: string;
  /** ISO 8601. */
  readonly until?: string;
}

/** Memory for the task ids of the context, in bytes. */
const learnedBytes = 4 << 20;

/** Finds the wanted records. It must see all records in order, because they show which tasks belong to a context. */
export class Filter {
  readonly isOn: boolean;
  readonly #wanted: Wanted;
  readonly #since: number;
  readonly #until: number;
  readonly #tasks = new BoundedMap<true>({ bytes: learnedBytes, bytesOf: (taskId) => memoryOf(taskId) });

  constructor(wanted: Wanted) {
    const { task, context, trace, level, since, until } = wanted;
    this.isOn = [task, context, trace, level, since, until].some((each) => each !== undefined);
    this.#wanted = wanted;
    this.#since = since === undefined ? -Infinity : Date.parse(since);
    this.#until = until === undefined ? Infinity : Date.parse(until);
  }

  accepts({ fields, level, time }: JsonRecord): boolean {
    const { task, context, trace, level: least } = this.#wanted;
    const isOfContext = context === undefined || this.#isOf(context, fields);
    if (!isOfContext || (task !== undefined && !isSameId(fields["taskId"], task))) return false;
    const traces = [fields["traceId"], fields["trace_id"]];
    if (trace !== undefined && !traces.some((id) => typeof id === "string" && id.toLowerCase() === trace)) return false;
    if (least !== undefined && (level === undefined || lineLevels.indexOf(level) < lineLevels.indexOf(least))) {
      return false;
    }
    if (this.#since === -Infinity && this.#until === Infinity) return true;
    return time !== undefined && time >= this.#since && time <= this.#until;
  }

  #isOf(context: string, { taskId, contextId }: JsonRecord["fields"]): boolean {
    const id = typeof taskId === "string" ? taskId : undefined;
    if (typeof contextId !== "string") return id !== undefined && this.#tasks.get(id) === true;
    if (!isSameId(contextId, context)) return false;
    if (id !== undefined) this.#tasks.set(id, true);
    return true;
  }
}

/** Whether an id is the wanted one, or ends with it if that is a short id. */
function isSameId(id: unknown, wanted: string): boolean {
  return typeof id === "string" && (id === wanted || (wanted.length >= shortIdLength && id.endsWith(wanted)));
}

/** A record as text for people. */
export function recordText({ prefix, fields, level, time }: JsonRecord, style: Style): string {
  const words = ["message", "msg"].find((name) => typeof fields[name] === "string");
  const message = words === undefined ? "" : String(fields[words]);
  const { err } = fields;
  const hidden = [words, "err", ...(level === undefined ? [] : ["level"]), ...(time === undefined ? [] : ["time"])];
  const rest = Object.fromEntries(Object.entries(fields).filter(([name]) => !hidden.includes(name)));
  const text = logText(
    {
      time: time === undefined ? undefined : new Date(time),
      level,
      message,
      fields: { ...(err !== undefined && { cause: err }), ...rest },
    },
    style,
  );
  return `${prefix === "" ? "" : style("dim", plain(prefix))}${text}`;
}

/** A record as JSON on one line. Numbers keep all of their digits. */
export function recordJson({ json }: JsonRecord): string {
  // A carriage return is white space between JSON tokens, and cannot occur inside of a JSON string.
  return `${escapeControls(json.replaceAll("\r", " "))}\n`;
}

/** A line that is not a record, unchanged except for terminal control characters. */
export function otherText({ text, leftOut }: Line, style: Style): string {
  const rest = leftOut === 0 ? "" : ` … (${byteSize(leftOut)} more)`;
  return text === "" ? "\n" : `${style("dim", plain(cut(text, limits.record)) + rest)}\n`;
}
