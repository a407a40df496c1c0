import { check, type SchemaIssue, type StandardSchema, type FieldViolation } from "../model/index.ts";
import { fail, isObject, jsonName, type Schema } from "../model/schema.ts";
import { violation } from "../schema/data.ts";
import { isPromise, unhandled } from "./hook-calls.ts";
import { utf8Length } from "../base/index.ts";

/**
 * Converts a schema of this package to a Standard Schema, for the extensions of this package, which use no schema library. The checked value is not
 * changed. The result is a copy without members that the schema does not know; free JSON in it is shared.
 *
 * @example
 * ```ts
 * import { object, required, string } from "../../model/schema.ts";
 *
 * const quote = standardSchema(object<{ text: string }>({ text: required(string) }));
 * ```
 */
export function standardSchema<T>(schema: Schema<T>): StandardSchema<T> {
  return {
    "~standard": {
      version: 1,
      vendor: "parley",
      validate(value) {
        const checked = check(schema, value, "copy");
        return checked.ok
          ? { value: checked.value }
          : {
              issues: checked.violations.map(({ field, description }): SchemaIssue => ({
                message: description,
                path: pathOf(field),
              })),
            };
      },
    },
  };
}

/** The steps of a path such as `steps[0].name`. */
function pathOf(field: string): readonly PropertyKey[] {
  return Array.from(field.matchAll(/\[(\d+)\]|[^.[\]]+/g), ([name, index]) =>
    index === undefined ? name : Number(index),
  );
}

/* One value against one schema. The value is untrusted, and the schema may be of any library. */

type Fit = { readonly ok: true; readonly value: unknown } | { readonly ok: false; readonly issues: Issues };

type Issues = readonly SchemaIssue[];

/**
 * Checks a value. If a schema throws, the value does not match: untrusted input must fail only its own call.
 *
 * @param field - The name of the value, for the error.
 *
 * @throws TypeError for an asynchronous schema, which is a mistake of the extension's author.
 */
export function fit(schema: StandardSchema, value: unknown, field?: string): Fit {
  let result: unknown;
  try {
    // A copy, because some libraries set defaults in the value itself, which is part of a message.
    result = schema["~standard"].validate(structuredClone(value));
  } catch {
    return refused([{ message: "the schema could not check it" }]);
  }
  if (isPromise(result)) {
    unhandled(result);
    const which = field === undefined ? "" : `, of ${field},`;
    throw new TypeError(`A schema of an extension${which} returned a promise; it must be synchronous`);
  }
  const { issues, value: output }: Readonly<Record<string, unknown>> = isObject(result) ? result : unanswered;
  if (issues === undefined || issues === null) return { ok: true, value: output };
  if (!Array.isArray(issues) || issues.length === 0) return refused([{ message: "the schema does not say why" }]);
  return refused(issues as Issues);
}

const unanswered = { issues: [] };

function refused(issues: Issues): Fit {
  return { ok: false, issues };
}

/** Why a value at `field` does not fit, without the value, since it may be a secret. Empty if it fits. */
export function misfits(schema: StandardSchema, field: string, value: unknown): readonly FieldViolation[] {
  const result = fit(schema, value, field);
  if (result.ok) return [];
  return result.issues.map((issue) => violation(field, value, issueOf(issue)));
}

/** An issue of the declared type. Its schema may be of any library. */
function issueOf(issue: unknown): SchemaIssue {
  const { message, path }: Readonly<Record<string, unknown>> = isObject(issue) ? issue : {};
  return { message: String(message), path: Array.isArray(path) ? path : [] };
}

/** Whether a field is only a schema. Schemas of some libraries are functions. */
export function isSchema(field: unknown): field is StandardSchema {
  return ((typeof field === "object" && field !== null) || typeof field === "function") && "~standard" in field;
}

const noSchema = "must be a schema of a library of Standard Schema (https://standardschema.dev), such as zod";

/** Sample values, to find schemas that throw or return a promise. */
const samples: readonly unknown[] = [undefined, "", 0, true, {}, []];

/** Why a value cannot be a schema of an extension; `undefined` if no problem shows with sample values. */
export function schemaProblem(schema: unknown): string | undefined {
  const standard = isSchema(schema)
    ? (schema["~standard"] as Partial<StandardSchema["~standard"]> | undefined)
    : undefined;
  if (typeof standard?.validate !== "function") return noSchema;
  return samples.some((sample) => answersLater(schema as StandardSchema, sample))
    ? "must be synchronous, but this schema returns a promise"
    : undefined;
}

function answersLater(schema: StandardSchema, sample: unknown): boolean {
  try {
    const answer: unknown = schema["~standard"].validate(structuredClone(sample));
    unhandled(answer);
    return isPromise(answer);
  } catch {
    return false;
  }
}

/**
 * A schema of an object that rejects unknown members, as some extensions demand. Members may have their proto names, such as
 * `client_id` for `clientId`.
 */
export function withoutOthers<T>(names: readonly (keyof T & string)[], schema: Schema<T>): Schema<T> {
  const known = new Set<string>(names);
  const nameOf = (name: string): string => (known.has(name) ? name : jsonName(name));
  return (value, state) => {
    if (!isObject(value)) return schema(value, state);
    const members = Object.entries(value).map(([name, member]) => [nameOf(name), member] as const);
    if (members.every(([name]) => known.has(name))) return schema(Object.fromEntries(members), state);
    return fail(state, `must not have other members than ${names.join(", ")}`);
  };
}

/** Size of a value as JSON, in bytes. Infinite for a value that is nested so deeply that the stack does not hold it. */
export function jsonBytes(value: unknown): number {
  try {
    return utf8Length(JSON.stringify(value));
  } catch {
    return Infinity;
  }
}
