import type { FieldViolation } from "./errors.ts";

/*
 * A small checker for JSON from outside. A schema checks a value, corrects in place what the protocol allows in several
 * forms, and collects violations with their paths. Schemas are closures that are made once (docs/decisions/schemas.md).
 */

/** Most violations that a check collects. It then stops, so that a bad request cannot cost more than a good one. */
export const maxViolations = 32;

/**
 * How strict a check is, and what it does with the value.
 *
 * - `request`: strict. Changes the value in place and drops unknown members.
 * - `copy`: as strict, but makes a new value. It shares free JSON (`metadata`, `data`) with the old one.
 * - `answer`: lenient, for what a server says. Unknown members stay, and defaults that protobuf leaves out are filled in.
 */
export type CheckMode = "request" | "copy" | "answer";

/** What a check carries along. */
export interface CheckState {
  readonly mode: CheckMode;
  readonly violations: Violation[];
  /** Maximum number of violations. */
  readonly max: number;
}

/** A violation of the value at `field`. */
export interface Violation {
  field: string;
  readonly description: string;
}

/** Checks unknown input. Pass it to `check()`: it is not called by hand. */
export interface Schema<T> {
  (value: unknown, state: CheckState): unknown;
  /** The type that it checks, for the compiler alone. Never set. */
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
      /** What is wrong, at most `max`. */
      readonly violations: readonly FieldViolation[];
    };

/**
 * Checks unknown input against a schema. The result holds the input itself, or a copy where the mode is `copy`.
 *
 * @param max - Maximum number of violations that are collected. Default `maxViolations`.
 *
 * @example
 * ```ts
 * const checked = check(messageSchema, JSON.parse(body), "request");
 * if (checked.ok) console.log(checked.value.parts.length);
 * else console.log(checked.violations); // [{ field: "parts[0]", description: "must have exactly one of …" }]
 * ```
 */
export function check<T>(schema: Schema<T>, value: unknown, mode: CheckMode, max: number = maxViolations): Checked<T> {
  const state: CheckState = { mode, violations: [], max };
  const checked = schema(value, state);
  if (checked === undefined && state.violations.length === 0) fail(state, "is required");
  return state.violations.length === 0
    ? { ok: true, value: checked as T }
    : { ok: false, violations: state.violations };
}

/** Adds a violation of the current value. The caller puts its path in front. */
export function fail(state: CheckState, description: string): undefined {
  if (state.violations.length < state.max) state.violations.push({ field: "", description });
  return undefined;
}

/** Puts the name of a member in front of the paths of its violations. Valid input never makes a path. */
export function locate(state: CheckState, since: number, name: string): void {
  for (let i = since; i < state.violations.length; i += 1) {
    const violation = state.violations[i] as Violation;
    const rest = violation.field;
    violation.field = name + (rest === "" || rest.startsWith("[") ? "" : ".") + rest;
  }
}
