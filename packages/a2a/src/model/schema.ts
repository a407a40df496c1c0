import type { FieldViolation } from "./errors.ts";

/*
 * A small checker for JSON. A schema checks a value, normalizes it in place, and collects violations with their paths. Schemas are closures
 * that are made once (docs/decisions/schemas.md).
 */

/** Maximum number of violations that a check collects before it stops, so that a bad request cannot cost more than a good one. */
export const maxViolations = 32;

/**
 * The strictness of a check, and whether it changes the value.
 *
 * - `request`: strict. Changes the value in place and drops unknown members.
 * - `copy`: equally strict, but returns a new value. It shares free JSON (`metadata`, `data`) with the old one.
 * - `answer`: lenient, for a server's answers. Keeps unknown members, and adds defaults that protobuf omits.
 */
export type CheckMode = "request" | "copy" | "answer";

/** The state of a check. */
export interface CheckState {
  readonly mode: CheckMode;
  /** Whether to copy values that need corrections instead of changing them. */
  readonly keeps: boolean;
  readonly violations: Violation[];
  /** Maximum number of violations. */
  readonly max: number;
}

/** A violation of the value at `field`. */
export interface Violation {
  field: string;
  readonly description: string;
}

/** Checks unknown input. Pass it to `check()`; do not call it directly. */
export interface Schema<T> {
  (value: unknown, state: CheckState): unknown;
  /** Type-only; absent at runtime. */
  readonly type?: T;
}

/** The result of a check. */
export type Checked<T> =
  | {
      /** The value is right. */
      readonly ok: true;
      /** The value: the input itself, or its copy. */
      readonly value: T;
    }
  | {
      readonly ok: false;
      /** The violations, at most `max`. */
      readonly violations: readonly FieldViolation[];
    };

/**
 * Checks unknown input against a schema. Returns the input itself, or a copy in mode `copy`.
 *
 * @param max - Maximum number of violations that are collected. Default `maxViolations`.
 * @param keeps - Whether to copy values that need corrections instead of changing the input. Default false.
 *
 * @example
 * ```ts
 * const checked = check(messageSchema, JSON.parse(body), "request");
 * if (checked.ok) console.log(checked.value.parts.length);
 * else console.log(checked.violations); // [{ field: "parts[0]", description: "must have exactly one of …" }]
 * ```
 */
export function check<T>(
  schema: Schema<T>,
  value: unknown,
  mode: CheckMode,
  max: number = maxViolations,
  keeps = false,
): Checked<T> {
  const state: CheckState = { mode, keeps, violations: [], max };
  const checked = schema(value, state);
  if (checked === undefined && state.violations.length === 0) fail(state, "is required");
  return state.violations.length === 0
    ? { ok: true, value: checked as T }
    : { ok: false, violations: state.violations };
}

/** Adds a violation of the current value. The caller prepends its path. */
export function fail(state: CheckState, description: string): undefined {
  if (state.violations.length < state.max) state.violations.push({ field: "", description });
  return undefined;
}

/** Prepends the name of a member to the paths of its violations. Valid input never needs a path. */
export function locate(state: CheckState, since: number, name: string): void {
  for (const violation of state.violations.slice(since)) {
    const rest = violation.field;
    violation.field = name + (rest === "" || rest.startsWith("[") ? "" : ".") + rest;
  }
}

/** Whether a value is a JSON object. */
export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** `Array.isArray`, with items of type `unknown` instead of `any`. */
export const isArray: (value: unknown) => value is readonly unknown[] = Array.isArray;

/** The items of an array; empty for other values. */
export function itemsOf(value: unknown): readonly unknown[] {
  return isArray(value) ? value : [];
}

/** Any JSON object, unchanged. It comes from `JSON.parse`, so its content needs no check. */
export const struct: Schema<never> = (value, state) => (isObject(value) ? value : fail(state, "must be an object"));

/** Any JSON value, unchanged. */
export const anything: Schema<never> = (value) => value;

/** Text, which may be empty. */
export const string: Schema<string> = (value, state) =>
  typeof value === "string" ? value : fail(state, "must be a string");

/** Text that must not be empty. */
export const filled: Schema<string> = (value, state) =>
  value === "" && state.mode !== "answer" ? fail(state, "must not be empty") : string(value, state);

/** Text where empty means absent, as in protobuf. */
export const blank: Schema<string> = (value, state) => (value === "" ? undefined : string(value, state));

/** Maximum length of an identifier in a request, in characters. Identifiers become keys of stores and indexes. */
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
    typeof value === "number" && Number.isInteger(value) && value >= min && value <= max
      ? value
      : fail(state, description);
}

/** A finite number. */
export function number(min: number = Number.NEGATIVE_INFINITY): Schema<number> {
  const description = Number.isFinite(min) ? `must be a number, ${min} or more` : "must be a number";
  return (value, state) =>
    typeof value === "number" && Number.isFinite(value) && value >= min ? value : fail(state, description);
}

/** A schema with a further test. `description` says what the value must be: `must be a URI`. */
export function satisfying<T>(schema: Schema<T>, description: string, test: (value: T) => boolean): Schema<T> {
  return (value, state) => {
    const before = state.violations.length;
    const checked = schema(value, state);
    if (checked === undefined || state.violations.length > before || test(checked as T)) return checked;
    return fail(state, description);
  };
}

/** One of these names. `unset`: protobuf's name for an absent value. */
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
    const utc: string | null = hasDay(match[0]) ? time.toJSON() : null;
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

/** A member of an object. */
export interface Field<T> {
  readonly schema: Schema<T>;
  readonly required: boolean;
  /** The default of a required member that answers may omit, as protobuf encoders do. */
  readonly otherwise?: (() => T) | undefined;
  /** Whether `null` is a value. In other modes it means "absent". */
  readonly nullable?: boolean;
}

export function required<T>(schema: Schema<T>, otherwise?: () => T): Field<T> & { readonly required: true } {
  return { schema, required: true, otherwise };
}

export function optional<T>(schema: Schema<T>): Field<T> & { readonly required: false } {
  return { schema, required: false };
}

/** A field for each member of `T`. The compiler checks names and optionality against the type. */
export type Fields<T> = {
  readonly [Name in keyof T]-?: Field<Exclude<T[Name], undefined>> & {
    readonly required: object extends Pick<T, Name> ? false : true;
  };
};

/** Requires exactly one of some members. */
export interface OneOf {
  /** Names of these members. Default: all members of the object. */
  readonly members?: readonly string[];
  /** Members to add to an answer that has no member of this union. Absent: such an answer is invalid. */
  readonly none?: object;
}

export const exactlyOne: OneOf = {};

/** The object that is returned for a value. */
function begun(value: Record<string, unknown>, { mode, keeps }: CheckState): Record<string, unknown> {
  return mode === "copy" ? {} : keeps ? { ...value } : value;
}

/** The members of all types of a union. */
type Members<Union> = { readonly [Name in Union extends unknown ? keyof Union : never]?: MemberOf<Union, Name> };
type MemberOf<Union, Name extends PropertyKey> = Union extends { readonly [Key in Name]?: infer Value }
  ? Exclude<Value, undefined>
  : never;

/** An object of one of several types. `oneOf`: the members that distinguish them. */
export const union: <Union>(fields: Fields<Members<Union>>, oneOf: OneOf) => Schema<Union> = members;

export const object: <T>(fields: Fields<T>, oneOf?: OneOf) => Schema<T> = members;

function members<T>(fields: Fields<T>, oneOf?: OneOf): Schema<never> {
  const table = new Map<string, Field<unknown>>(Object.entries(fields));
  const needed = [...table].filter(([, field]) => field.required);
  const choice = new Set(oneOf && (oneOf.members ?? table.keys()));
  const chooseOne = `must have exactly one of ${[...choice].join(", ")}`;

  const schema: Schema<never> = (value, state) => {
    if (!isObject(value)) return fail(state, "must be an object");
    const out = begun(value, state);
    const since = state.violations.length;
    let found = 0;
    let chosen = 0;
    for (const name in value) {
      const field = table.get(name);
      if (field === undefined) {
        if (state.mode !== "copy" && table.has(jsonName(name))) {
          state.violations.length = since;
          return schema(withJsonNames(value, table), state);
        }
        if (state.mode === "request") delete out[name];
        continue;
      }
      const before = state.violations.length;
      const member = value[name];
      const checked =
        member === undefined || (member === null && !field.nullable) ? undefined : field.schema(member, state);
      if (state.violations.length > before) locate(state, before, name);
      else if (checked === undefined) {
        delete out[name];
        continue;
      } else if (checked !== member || out !== value) out[name] = checked;
      if (field.required) found += 1;
      if (choice.has(name)) chosen += 1;
    }
    if (found < needed.length) addMissing(needed, value, out, state);
    if (oneOf !== undefined && chosen !== 1) {
      if (chosen > 0 || oneOf.none === undefined || state.mode !== "answer") return fail(state, chooseOne);
      Object.assign(out, oneOf.none);
    }
    return out;
  };
  return schema;
}

/** The JSON name of a proto field: `message_id` becomes `messageId`. Readers of ProtoJSON accept both (A2A 1.0 §5.5). */
export function jsonName(protoName: string): string {
  return protoName.replace(/_([a-z\d])/g, (_, letter: string) => letter.toUpperCase());
}

/** A copy of the object with JSON names instead of proto names. If it has both, the JSON name takes precedence. */
function withJsonNames(value: object, table: ReadonlyMap<string, unknown>): Record<string, unknown> {
  const named = Object.entries(value).sort(([one], [other]) => Number(table.has(one)) - Number(table.has(other)));
  return Object.fromEntries(named.map(([name, member]) => [table.has(jsonName(name)) ? jsonName(name) : name, member]));
}

function addMissing(
  needed: readonly (readonly [string, Field<unknown>])[],
  value: Record<string, unknown>,
  out: Record<string, unknown>,
  state: CheckState,
): void {
  for (const [name, field] of needed) {
    if (value[name] !== undefined && value[name] !== null) continue;
    if (state.mode === "answer" && field.otherwise !== undefined) {
      out[name] = field.otherwise();
      continue;
    }
    const before = state.violations.length;
    fail(state, "is required");
    locate(state, before, name);
  }
}

/** An array. `nonEmpty`: the violation for an empty array. Absent: an array may be empty. */
export function list<T>(items: Schema<T>, nonEmpty?: string): Schema<readonly T[]> {
  return (value, state) => {
    if (!Array.isArray(value)) return fail(state, "must be an array");
    if (value.length === 0 && nonEmpty !== undefined && state.mode !== "answer") return fail(state, nonEmpty);
    const out: unknown[] = state.mode === "copy" || state.keeps ? value.slice() : value;
    for (let i = 0; i < value.length && state.violations.length < state.max; i += 1) {
      const before = state.violations.length;
      const checked = items(value[i], state);
      if (checked === undefined && state.violations.length === before) fail(state, "must not be empty");
      if (state.violations.length > before) locate(state, before, `[${i}]`);
      else if (checked !== value[i] || out !== value) out[i] = checked;
    }
    return out;
  };
}

/** Default of an absent list, and of an absent text. */
export const none = (): readonly never[] => [];
export const nothing = (): string => "";

/** An object whose keys are data. */
export function record<T>(values: Schema<T>): Schema<Readonly<Record<string, T>>> {
  return (value, state) => {
    if (!isObject(value)) return fail(state, "must be an object");
    const out = begun(value, state);
    for (const name of Object.keys(value)) {
      const before = state.violations.length;
      const checked = values(value[name], state);
      if (state.violations.length > before) locate(state, before, name);
      // Assigning to this key would set the prototype of the copy. No scheme and no scope has this name.
      else if (name === "__proto__") delete out[name];
      else if (checked !== value[name] || out !== value) out[name] = checked;
    }
    return out;
  };
}

/** A list of texts. */
export const strings: Schema<readonly string[]> = list(string);

/**
 * A schema of any library that implements Standard Schema 1 (https://standardschema.dev): zod, valibot, ArkType and others. The
 * interface is declared here, as its page recommends, so no library is needed for it.
 *
 * @typeParam Output - The type of a valid value.
 */
export interface StandardSchema<Output = unknown> {
  /** The members of the standard. */
  readonly "~standard": {
    /** The version of the standard. */
    readonly version: 1;
    /** The name of the library. */
    readonly vendor: string;
    /** Checks a value, and may change it, for example to set a default. */
    readonly validate: (value: unknown) => SchemaResult<Output> | Promise<SchemaResult<Output>>;
    /** Type-only; absent at runtime. */
    readonly types?: { readonly input: unknown; readonly output: Output } | undefined;
  };
}

/** The result of a schema's check. */
export type SchemaResult<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly SchemaIssue[] };

/** Why a value does not fit. */
export interface SchemaIssue {
  /** The problem. */
  readonly message: string;
  /** Its path. Absent or empty: the value itself. */
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}
