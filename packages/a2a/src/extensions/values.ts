import type { FieldViolation, SchemaIssue, StandardSchema } from "../model/index.ts";
import { violation } from "../schema/data.ts";
import { isPromise, unhandled } from "./failures.ts";

/* One value against one schema. The value may come from a stranger, and the schema from any library. */

/** What a schema says about a value. */
export type Fit = { readonly ok: true; readonly value: unknown } | { readonly ok: false; readonly issues: Issues };

type Issues = readonly SchemaIssue[];

/**
 * Checks a value. A schema that throws does not fit: what a stranger sends must not end more than its own call.
 *
 * @param field - Which value it is, for the error.
 *
 * @throws TypeError for a schema that answers by a promise. That is a mistake of who wrote the extension.
 */
export function fit(schema: StandardSchema, value: unknown, field?: string): Fit {
  let result: unknown;
  try {
    // A copy: some libraries set defaults in the value itself, which is part of a message.
    result = schema["~standard"].validate(structuredClone(value));
  } catch {
    return refused([{ message: "the schema could not check it" }]);
  }
  if (isPromise(result)) {
    unhandled(result);
    const which = field === undefined ? "" : `, of ${field},`;
    throw new TypeError(`A schema of an extension${which} has answered by a promise: it must answer at once`);
  }
  const { issues, value: output } = (typeof result === "object" && result !== null ? result : unanswered) as {
    readonly issues?: unknown;
    readonly value?: unknown;
  };
  if (issues === undefined || issues === null) return { ok: true, value: output };
  if (!Array.isArray(issues) || issues.length === 0) return refused([{ message: "the schema does not say why" }]);
  return refused(issues as Issues);
}

const unanswered = { issues: [] };

function refused(issues: Issues): Fit {
  return { ok: false, issues };
}

/** Why a value at `field` does not fit, without the value, since it may be a secret. Empty where it fits. */
export function misfits(schema: StandardSchema, field: string, value: unknown): readonly FieldViolation[] {
  const result = fit(schema, value, field);
  if (result.ok) return [];
  return result.issues.map((issue) => violation(field, value, issueOf(issue)));
}

/** An issue as its type says. Its schema may be of any library. */
function issueOf(issue: unknown): SchemaIssue {
  const { message, path } = (typeof issue === "object" && issue !== null ? issue : {}) as Partial<SchemaIssue>;
  return { message: String(message), path: Array.isArray(path) ? path : [] };
}

/** Whether a field is a schema alone. Those of some libraries are functions. */
export function isSchema(field: unknown): field is StandardSchema {
  return ((typeof field === "object" && field !== null) || typeof field === "function") && "~standard" in field;
}

const noSchema = "must be a schema of a library of Standard Schema (https://standardschema.dev), such as zod";

/** Values that the schemas of most fields take, or look into. */
const samples: readonly unknown[] = [undefined, "", 0, true, {}, []];

/** Why a value cannot be a schema of an extension; `undefined` where it can, as far as this can be known without what it will check. */
export function schemaProblem(schema: unknown): string | undefined {
  const standard = isSchema(schema)
    ? (schema["~standard"] as Partial<StandardSchema["~standard"]> | undefined)
    : undefined;
  if (typeof standard?.validate !== "function") return noSchema;
  return samples.some((sample) => answersLater(schema as StandardSchema, sample))
    ? "must answer at once, and this schema answers by a promise"
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
