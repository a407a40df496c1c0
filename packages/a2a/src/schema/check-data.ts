import { line } from "../base/display.ts";
import {
  maxViolations,
  type FieldViolation,
  type SchemaIssue,
  type SchemaResult,
  type StandardSchema,
} from "../model/index.ts";
import type { FoundData } from "./found-data.ts";

/** The first value that fits, or why none does: no fields where there was no value at all. */
export type DataCheck<Output> =
  | { readonly fits: true; readonly value: Output }
  | { readonly fits: false; readonly fields: readonly FieldViolation[] };

/**
 * Looks for the first value that fits a schema. What is said of the others comes from the schema, cut and cleaned, because the
 * values were chosen by a stranger, and without the values: they may be secrets.
 */
export async function checkData<Output>(
  found: readonly FoundData[],
  schema: StandardSchema<Output>,
): Promise<DataCheck<Output>> {
  const { validate } = (schema as StandardSchema<Output> | undefined)?.["~standard"] ?? {};
  if (typeof validate !== "function") {
    throw new TypeError(
      "A schema for data must be of a library of Standard Schema (https://standardschema.dev), such as zod",
    );
  }
  const fields: FieldViolation[] = [];
  for (const { field, ...rest } of found) {
    if (!("value" in rest)) {
      fields.push({ field, description: "is not JSON" });
      continue;
    }
    // A copy: some libraries set defaults in the value itself, which is part of a stored message.
    const result: SchemaResult<Output> | undefined = await schema["~standard"].validate(structuredClone(rest.value));
    if (typeof result !== "object" || result === null || !isListOrAbsent(result.issues)) {
      throw new TypeError("A schema has answered neither a value nor a list of issues");
    }
    if (result.issues === undefined) return { fits: true, value: result.value };
    const issues = result.issues.length === 0 ? [{ message: "the schema does not say why" }] : result.issues;
    const room = Math.max(0, maxViolations - fields.length);
    for (const issue of issues.slice(0, room)) fields.push(violation(field, rest.value, issue));
  }
  return { fits: false, fields: fields.slice(0, maxViolations) };
}

function isListOrAbsent(issues: unknown): boolean {
  return issues === undefined || Array.isArray(issues);
}

/** Longest description of a field, in characters. */
const longest = 200;
/** Longest path inside of a value. */
const deepest = 16;

/** What a schema says of a value at `field`: cut, cleaned, and without the value. */
export function violation(field: string, value: unknown, { message, path = [] }: SchemaIssue): FieldViolation {
  const keys = path.slice(0, deepest).map((step) => (typeof step === "object" ? step.key : step));
  let at: unknown = value;
  let place = field;
  for (const key of keys) {
    place += Array.isArray(at) && Number.isInteger(Number(key)) ? `[${String(key)}]` : memberPath(key);
    at = typeof at === "object" && at !== null && Object.hasOwn(at, key) ? at[key as keyof typeof at] : undefined;
  }
  return { field: place, description: `does not fit: ${line(withoutValues(String(message), at), longest)}` };
}

/** Names that are shown as they are. Others may hold anything. */
const plainName = /^[\w$-]{1,64}$/;

function memberPath(key: PropertyKey): string {
  const name = String(key);
  return plainName.test(name) ? `.${name}` : `["…"]`;
}

/** The most members of a value that are looked at for texts. */
const maxMembers = 1000;

/** A message of a schema without the texts of the value: some libraries repeat them, in quotes. */
function withoutValues(message: string, value: unknown): string {
  if (typeof value === "string") return value === "" ? message : hidden(message, value);
  const texts = new Set<string>();
  const known = textsOf(value, texts, { left: maxMembers });
  // Of a value with too many members none of the quotes is shown.
  return message.replace(/"(?:[^"\\]|\\.)*("|$)/g, (quoted) => {
    const inside = quoted.slice(1, quoted.endsWith('"') && quoted.length > 1 ? -1 : undefined);
    return known && !texts.has(inside) && !texts.has(unescaped(inside)) ? quoted : '"…"';
  });
}

function hidden(message: string, value: string): string {
  const written = JSON.stringify(value);
  // A short text without quotes would be found in words of the message too.
  const bare = value.length > 3 ? [written.slice(1, -1), value] : [];
  const forms = [written, `"${value}"`, `'${value}'`, `\`${value}\``, ...bare];
  return forms.reduce((text, form) => text.replaceAll(form, form === value ? "…" : '"…"'), message);
}

/** Collects the texts in a value, and those names of members that are not plain. `false`: there are too many. */
function textsOf(value: unknown, into: Set<string>, budget: { left: number }): boolean {
  budget.left -= 1;
  if (budget.left < 0) return false;
  if (typeof value === "string") into.add(value);
  if (typeof value !== "object" || value === null) return true;
  return Object.entries(value).every(([name, member]) => {
    if (!plainName.test(name)) into.add(name);
    return textsOf(member, into, budget);
  });
}

function unescaped(text: string): string {
  try {
    return String(JSON.parse(`"${text}"`));
  } catch {
    return text;
  }
}
