import { fail, isObject, type CheckState, type Schema } from "./check.ts";

/* Schemas of single values. */

/** Any JSON object, unchanged. It comes from `JSON.parse`, so its content needs no check. */
export const struct: Schema<never> = (value, state) => (isObject(value) ? value : fail(state, "must be an object"));

/** Any JSON value, unchanged. */
export const anything: Schema<never> = (value) => value;

/** Text, also the empty one. */
export const string: Schema<string> = (value, state) =>
  typeof value === "string" ? value : fail(state, "must be a string");

/** Text that must not be empty. */
export const filled: Schema<string> = (value, state) =>
  value === "" && state.mode !== "answer" ? fail(state, "must not be empty") : string(value, state);

/** Text where empty means absent, as in protobuf. */
export const blank: Schema<string> = (value, state) => (value === "" ? undefined : string(value, state));

/** Longest identifier of a request, in characters. Identifiers become keys of stores and indexes. */
const maxIdLength = 1024;
const unfit = /\0|[\uD800-\uDFFF]/u;

function checkId(id: unknown, state: CheckState): unknown {
  if (typeof id !== "string" || state.mode === "answer") return id;
  if (id.length > maxIdLength) return fail(state, `must not be longer than ${maxIdLength} characters`);
  return unfit.test(id) ? fail(state, "must not hold NUL or half of a surrogate pair") : id;
}

/** A required identifier. */
export const id: Schema<string> = (value, state) => checkId(filled(value, state), state);

/** An optional identifier. An empty one counts as absent. */
export const optionalId: Schema<string> = (value, state) => checkId(blank(value, state), state);

export const boolean: Schema<boolean> = (value, state) =>
  typeof value === "boolean" ? value : fail(state, "must be true or false");

const maxInt32: number = 2 ** 31 - 1;

/** A whole number that fits into 32 bits. */
export function integer(min: number, max: number = maxInt32): Schema<number> {
  const description =
    max < maxInt32 ? `must be a whole number from ${min} to ${max}` : `must be a whole number, ${min} or more`;
  return (value, state) =>
    Number.isInteger(value) && (value as number) >= min && (value as number) <= max ? value : fail(state, description);
}

/** One of these names. `unset` is the name that protobuf uses for: absent. */
export function oneName<T extends string>(names: readonly T[], unset?: string): Schema<T> {
  const known = new Set<unknown>(names);
  return (value, state) => {
    if (known.has(value)) return value;
    return value === unset ? undefined : fail(state, `must be one of ${names.join(", ")}`);
  };
}

const rfc3339 = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(Z|[+-]\d\d:\d\d)?$/i;

/** A time in RFC 3339 with any offset. The result is UTC with milliseconds (A2A 1.0 §5.6.1). Answers may lack the zone. */
export const timestamp: Schema<string> = (value, state) => {
  const match = typeof value === "string" ? rfc3339.exec(value) : null;
  if (match !== null && (match[1] !== undefined || state.mode === "answer")) {
    const time = new Date(match[0].toUpperCase() + (match[1] === undefined ? "Z" : ""));
    // JavaScript engines read the 31st of a short month as the 1st of the next one, so the day is checked as well.
    const utc = hasDay(match[0]) ? (time.toJSON() as string | null) : null;
    if (utc?.length === 24) return utc;
  }
  return fail(state, "must be an RFC 3339 time such as 2026-01-31T12:00:00.000Z");
};

function hasDay(text: string): boolean {
  const day = Number(text.slice(8, 10));
  return day <= 28 || new Date(text.slice(0, 10)).getUTCDate() === day;
}

const standard = /^[A-Za-z\d+/]*={0,2}$/;
const urlSafe = /^[\w-]*={0,2}$/;

/** Base64 of either alphabet, with or without padding. The result is the standard alphabet with padding. */
export const base64: Schema<string> = (value, state) => {
  if (typeof value === "string") {
    if (value.length % 4 === 0 && standard.test(value)) return value;
    if (standard.test(value) || urlSafe.test(value)) {
      const bare = value.replaceAll("=", "");
      const padded = Math.ceil(bare.length / 4) * 4;
      if (bare.length % 4 !== 1 && (bare.length === value.length || padded === value.length))
        return bare.replaceAll("-", "+").replaceAll("_", "/").padEnd(padded, "=");
    }
  }
  return fail(state, "must be base64");
};
