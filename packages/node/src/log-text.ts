/** Values as a log shows them: content of requests must neither control a terminal nor fill a disk. */

// C0 but tab and line feed, DEL, C1, and what turns the direction of text: all that moves a cursor, paints, or hides.
const unsafe =
  // eslint-disable-next-line no-control-regex
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;

/** Control characters as escapes, so that they show and do nothing. In JSON the value stays the same. */
export function visible(text: string): string {
  return text.replace(unsafe, (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`);
}

/** The same without line breaks. */
export function oneLine(text: string): string {
  return visible(text.replace(/\n\s*/g, " "));
}

/** What a record may hold, in characters; a single text, a stack, the members of a list or object, and their depth. */
const limits = { record: 32_000, text: 2_000, stack: 8_000, members: 50, depth: 6 };

/** The beginning of a long text, and how much more there was. */
export function cut(text: string, length: number = limits.text): string {
  return text.length <= length ? text : `${text.slice(0, length)}… (${text.length - length} more characters)`;
}

/** A value as JSON has it, within bounds. */
export type Shown = string | number | boolean | null | readonly Shown[] | { readonly [name: string]: Shown };

/**
 * Fields of a record as plain JSON: long texts, lists and objects are cut, errors tell their stack, their members and
 * their causes, and what JSON has no word for stands as text. Getters and `toJSON` are not called.
 */
export function shownFields(fields: Readonly<Record<string, unknown>>): Readonly<Record<string, Shown>> {
  return new Walk().object(fields, 0);
}

/** One record being looked at, with what it may still hold. */
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
      const member = Object.getOwnPropertyDescriptor(value, name)?.value as unknown;
      if (member !== undefined) entries.push([this.#take(name, 100), this.#value(member, depth + 1)]);
    }
    return Object.fromEntries(entries);
  }

  #value(value: unknown, depth: number): Shown {
    if (typeof value === "string") return this.#take(value, limits.text);
    if (typeof value === "boolean" || value === null || Number.isFinite(value)) return value as Shown;
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
