import { cut, escapeControls } from "./display.ts";
import type { LogFields } from "./index.ts";

/* Formats log records, and truncates their values, because content of requests must neither control a terminal nor fill a disk. */

/** Colors a text, or returns it unchanged. */
export type LogStyle = (format: "dim" | "cyan" | "yellow" | "red", text: string) => string;

/** A record of a log. */
export interface LogRecord {
  /** `undefined`: unknown. */
  readonly time: Date | undefined;
  /** `undefined`: unknown. */
  readonly level: "debug" | "info" | "warn" | "error" | undefined;
  readonly message: string;
  readonly fields: LogFields;
}

const labels = { debug: "dim", info: "cyan", warn: "yellow", error: "red" } as const;

/** Ids of a record. They are long, so a line contains them only if users may need to copy them. */
const places = ["taskId", "contextId", "traceId", "trace_id", "span_id", "trace_flags"];

/**
 * A record as one line, and its cause as indented lines below it: time, level, agent, the end of the task's id, message, fields. Full ids
 * follow on warnings, on errors, and when a task is created.
 */
export function logText({ time, level, message, fields }: LogRecord, style: LogStyle): string {
  const { cause, agent, ...rest } = shown(fields);
  const audited = message === "Audit" ? auditWords(rest) : undefined;
  const words = audited?.words ?? message;
  const hidden = [...(audited?.fields ?? []), ...(level === "info" || level === "debug" ? places : [])];
  const isNew = rest["event"] === "task-created";
  const { taskId } = rest;
  const subject = [
    ...(typeof agent === "string" ? [oneLine(cut(agent, limits.name))] : []),
    ...(typeof taskId === "string" ? [shortId(taskId)] : []),
  ].join(" ");
  const more = Object.entries(typeof agent === "string" ? rest : { ...rest, ...(agent !== undefined && { agent }) })
    .filter(([name, value]) => (isNew && places.includes(name)) || !hidden.includes(name) || typeof value === "object")
    .map(([name, value]) => ` ${style("dim", `${oneLine(name)}=`)}${word(value)}`);
  const label = level === undefined ? "     " : style(labels[level], level.padEnd(5));
  const about = subject === "" ? "" : `${style("dim", subject)} `;
  const line = `${style("dim", clock(time))} ${label} ${about}${oneLine(cut(words, limits.text))}${more.join("")}\n`;
  return cause === undefined ? line : `${line}${causeLines(cause, "  ").join("\n")}\n`;
}

/** The text of an audit record, and the fields that the text includes. */
function auditWords({ event, outcome, action, state, subject }: Readonly<Record<string, Shown>>): {
  readonly words: string;
  readonly fields: readonly string[];
} {
  const fields = ["event", "outcome", "time", "state", ...(subject === "anonymous" ? ["subject"] : [])];
  if (event === "task-created") return { words: "Task created", fields };
  if (event === "task-state" && typeof state === "string") {
    return { words: `Task ${state.replace("TASK_STATE_", "").toLowerCase().replaceAll("_", "-")}`, fields };
  }
  const parts = [action ?? event, outcome === "success" ? undefined : outcome];
  return { words: parts.filter((part) => typeof part === "string").join(" "), fields: [...fields, "action"] };
}

/** The end of an id, because ids that sort by time have equal starts. */
export function shortId(id: string): string {
  return oneLine(id.length > shortIdLength + 4 ? id.slice(-shortIdLength) : id);
}

/** Characters of a short id. */
export const shortIdLength = 8;

/** The local time, with the day unless it is today. */
function clock(time: Date | undefined): string {
  if (time === undefined || Number.isNaN(time.getTime())) return "--:--:--";
  const text = time.toTimeString().slice(0, 8);
  if (time.toDateString() === new Date().toDateString()) return text;
  const day = [time.getFullYear(), time.getMonth() + 1, time.getDate()].map((part) => String(part).padStart(2, "0"));
  return `${day.join("-")} ${text}`;
}

/** The fields within the limits. Never throws. */
export function shown(fields: LogFields): ReturnType<typeof shownFields> {
  try {
    return shownFields(fields);
  } catch {
    // A proxy in the fields can throw.
    return { unreadable: "the fields of this record cannot be shown" };
  }
}

/** A single word unchanged, any other value as JSON. */
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

function oneLine(text: string): string {
  return escapeControls(text.replace(/\n\s*/g, " "));
}

/** Limits of a record: characters in all, of a text, of a stack and of a name; members of a list or object; and nesting. */
export const limits = { record: 32_000, text: 2_000, stack: 8_000, name: 100, members: 50, depth: 6 } as const;

/** A JSON value within the limits. */
type Shown = string | number | boolean | null | Shown[] | { readonly [name: string]: Shown };

/**
 * The fields of a record as JSON. Long texts, lists and objects are cut, errors have their stacks, members and causes, and values
 * that JSON does not have become text. Getters and `toJSON` are not called.
 */
function shownFields(fields: Readonly<Record<string, unknown>>): Readonly<Record<string, Shown>> {
  return new Walk().object(fields, 0);
}

/** Converts one record, within its limit of characters. */
class Walk {
  #left = limits.record;

  object(value: object, depth: number, without: readonly string[] = []): Record<string, Shown> {
    const entries: [string, Shown][] = [];
    for (const name in value) {
      if (without.includes(name)) continue;
      if (entries.length === limits.members || this.#left <= 0) {
        entries.push(["…", "truncated"]);
        break;
      }
      const member: unknown = Object.getOwnPropertyDescriptor(value, name)?.value;
      // An error that was read from JSON has its stack as an ordinary text.
      const length = name === "stack" ? limits.stack : limits.text;
      if (member !== undefined) entries.push([this.#take(name, limits.name), this.#value(member, depth + 1, length)]);
    }
    return Object.fromEntries(entries);
  }

  #value(value: unknown, depth: number, length: number = limits.text): Shown {
    if (typeof value === "string") return this.#take(value, length);
    if (typeof value === "boolean" || value === null) return value;
    if (typeof value === "number" && Number.isFinite(value)) return value;
    if (typeof value === "number" || typeof value === "bigint" || typeof value === "symbol") {
      return this.#take(String(value), limits.name);
    }
    if (typeof value === "function") return `(function ${this.#take(value.name, limits.name)})`;
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
      name: this.#take(String(name), limits.name),
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
