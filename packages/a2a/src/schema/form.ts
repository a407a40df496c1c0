import type { JsonObject, JsonValue, Message, Part } from "../model/index.ts";
import { line } from "../base/display.ts";

/* Forms of agents, as JSON Schema. A form with unsupported parts cannot be asked field by field. */

export type Kind = "string" | "number" | "integer" | "boolean";

/** An allowed value. */
export type Choice = string | number | boolean;

/** One field of a form. */
export interface Field {
  readonly name: string;
  /** Name for people. */
  readonly label: string;
  readonly description?: string | undefined;
  readonly kind: Kind;
  /** Its allowed values. */
  readonly choices?: readonly Choice[] | undefined;
  readonly required: boolean;
  /** The value of an empty answer. */
  readonly initial?: JsonValue | undefined;
  readonly schema: JsonObject;
}

/** A form. */
export interface Form {
  /** `undefined`: the form cannot be asked field by field. */
  readonly fields: readonly Field[] | undefined;
  /** Example data; `undefined` if the schema does not show it. */
  readonly sample: JsonValue | undefined;
}

/** Maximum characters of a name or a value that is shown. */
const maxName = 200;

/** A form with more fields is easier to answer with a file. */
const maxFields = 50;

/** Whether a part is a form: Parley's `turn.data()` marks it by media type, other agents send it as a member of data. */
export function isForm(part: Part): boolean {
  return schemaIn(part) !== undefined;
}

/** The form in a question. */
export function formIn(message: Message | undefined): Form | undefined {
  const schema = message?.parts.map(schemaIn).find((each) => each !== undefined);
  return schema && { fields: fieldsOf(schema), sample: sampleOf(schema, 0) };
}

function schemaIn({ data, mediaType = "" }: Part): JsonObject | undefined {
  if (!isObject(data)) return undefined;
  if (/^application\/schema\+json\s*(;|$)/i.test(mediaType)) return data;
  const { form } = data;
  return isObject(form) && isObject(form["properties"]) ? form : undefined;
}

function fieldsOf(schema: JsonObject): readonly Field[] | undefined {
  const { type = "object", properties, required } = schema;
  if (type !== "object" || !isObject(properties)) return undefined;
  const names = Object.keys(properties);
  if (names.length === 0 || names.length > maxFields) return undefined;
  const fields: Field[] = [];
  for (const name of names) {
    const isRequired = Array.isArray(required) && required.includes(name);
    const field = fieldOf(name, properties[name], isRequired);
    // Omits an optional field with an unsupported schema.
    if (field === undefined && isRequired) return undefined;
    if (field !== undefined) fields.push(field);
  }
  return fields;
}

function fieldOf(name: string, given: JsonValue | undefined, required: boolean): Field | undefined {
  const schema = isObject(given) ? withoutNull(given) : undefined;
  if (schema === undefined) return undefined;
  const choices = choicesOf(schema);
  const kind = kindOf(schema, choices);
  if (kind === undefined) return undefined;
  const { title, description, default: standard } = schema;
  return {
    name,
    label: typeof title === "string" && title !== "" ? title : name,
    description: typeof description === "string" ? description : undefined,
    kind,
    choices: choices?.filter(isChoice),
    required,
    initial: choices?.length === 1 && required ? choices[0] : standard,
    schema,
  };
}

/** A nullable schema without null. */
function withoutNull(schema: JsonObject): JsonObject | undefined {
  const { anyOf, oneOf, type, ...rest } = schema;
  const some = anyOf ?? oneOf;
  if (isList(some)) {
    const [only, ...others] = some.filter((each) => !(isObject(each) && each["type"] === "null"));
    return others.length === 0 && isObject(only) ? { ...rest, ...only } : undefined;
  }
  if (!isList(type)) return schema;
  const [only, ...others] = type.filter((each) => each !== "null");
  return others.length === 0 && only !== undefined ? { ...rest, type: only } : undefined;
}

/** The allowed values, if limited. Null stands for an absent field. */
function choicesOf({ enum: values, const: only }: JsonObject): readonly JsonValue[] | undefined {
  if (only !== undefined) return [only];
  if (!isList(values)) return undefined;
  const choices = values.filter((each) => each !== null);
  return choices.length === 0 ? undefined : choices;
}

function kindOf({ type }: JsonObject, choices: readonly JsonValue[] = []): Kind | undefined {
  const kind = type ?? typeof choices[0];
  const isScalar = kind === "string" || kind === "number" || kind === "integer" || kind === "boolean";
  return isScalar && choices.every(isChoice) ? kind : undefined;
}

function isChoice(value: JsonValue): value is Choice {
  return typeof value !== "object";
}

const maxSampleDepth = 3;

const samples: Readonly<Record<string, JsonValue>> = { string: "…", number: 0, integer: 0, boolean: false, array: [] };

function sampleOf(given: JsonValue | undefined, depth: number): JsonValue | undefined {
  const schema = isObject(given) ? withoutNull(given) : undefined;
  if (schema === undefined || depth > maxSampleDepth) return undefined;
  const { default: standard, type, properties } = schema;
  if (standard !== undefined) return standard;
  const [choice] = choicesOf(schema) ?? [];
  if (choice !== undefined) return choice;
  if (!isObject(properties))
    return typeof type === "string" && Object.hasOwn(samples, type) ? samples[type] : undefined;
  const members = Object.keys(properties)
    .slice(0, maxFields)
    .map((name) => [name, sampleOf(properties[name], depth + 1) ?? "…"] as const);
  return Object.fromEntries(members);
}

function isList(value: JsonValue | undefined): value is readonly JsonValue[] {
  return Array.isArray(value);
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/**
 * The only text that a field can have, such as the digest that an answer approves, so that a person need not repeat it. A boolean that must be
 * true is asked, because it is a consent.
 */
export function onlyText({ choices = [], kind, required }: Field): string | undefined {
  const [only] = choices;
  return required && kind === "string" && choices.length === 1 && typeof only === "string" ? only : undefined;
}

/** A value, or why the answer is invalid. `undefined`: an optional field without a value. */
export type Answer = { readonly value: JsonValue | undefined } | { readonly problem: string };

/** The value of a text. */
export function answerOf(field: Field, text: string): Answer {
  const { initial, required, choices } = field;
  if (text === "" && initial !== undefined) return { value: initial };
  if (text === "") return required ? { problem: "It is required" } : { value: undefined };
  if (choices !== undefined) {
    const found = choices.find((each) => String(each) === text) ?? onlyLike(choices, text);
    return found === undefined ? { problem: `It must be ${listed(choices)}` } : { value: found };
  }
  return parsers[field.kind](text, field.schema);
}

/** The choice that differs only in case. */
function onlyLike(choices: readonly Choice[], text: string): Choice | undefined {
  const like = choices.filter((each) => String(each).toLowerCase() === text.toLowerCase());
  return like.length === 1 ? like[0] : undefined;
}

const parsers: Readonly<Record<Field["kind"], (text: string, schema: JsonObject) => Answer>> = {
  string: stringOf,
  number: numberOf,
  integer: (text, schema) =>
    Number.isSafeInteger(Number(text)) ? numberOf(text, schema) : { problem: "It must be a whole number" },
  boolean: (text) => {
    if (/^(y|yes|true)$/i.test(text)) return { value: true };
    return /^(n|no|false)$/i.test(text) ? { value: false } : { problem: "It must be yes or no" };
  },
};

/** Does not check patterns, because a hostile pattern could run forever. */
function stringOf(text: string, { minLength, maxLength, format }: JsonObject): Answer {
  const { length } = Array.from(text);
  if (typeof minLength === "number" && length < minLength)
    return { problem: `It must have at least ${minLength} characters` };
  if (typeof maxLength === "number" && length > maxLength)
    return { problem: `It must have at most ${maxLength} characters` };
  const known = typeof format === "string" && Object.hasOwn(formats, format) ? formats[format] : undefined;
  return known === undefined || known.fits(text) ? { value: text } : { problem: `It must be ${known.what}` };
}

/** Supported formats (JSON Schema 2020-12 §7.3). */
const formats: Readonly<Record<string, { readonly what: string; fits(text: string): boolean }>> = {
  date: {
    what: "a date such as 2026-01-31",
    fits: (text) => /^\d{4}-\d\d-\d\d$/.test(text) && !Number.isNaN(Date.parse(text)),
  },
  "date-time": {
    what: "a time such as 2026-01-31T12:00:00Z",
    fits: (text) => /^\d{4}-\d\d-\d\dT\S+$/i.test(text) && !Number.isNaN(Date.parse(text)),
  },
  email: { what: "an e-mail address", fits: (text) => /^[^\s@]+@[^\s@]+$/.test(text) },
  uri: { what: "a URL", fits: (text) => URL.canParse(text) },
};

function numberOf(text: string, schema: JsonObject): Answer {
  const value = Number(text);
  if (!Number.isFinite(value)) return { problem: "It must be a number" };
  for (const [name, what, fits] of bounds) {
    const bound = schema[name];
    if (typeof bound === "number" && !fits(value, bound)) return { problem: `It must be ${what} ${bound}` };
  }
  return { value };
}

/** Bounds of numbers, as words for hints and problems. */
const bounds: readonly (readonly [name: string, what: string, fits: (value: number, bound: number) => boolean])[] = [
  ["minimum", "at least", (value, bound) => value >= bound],
  ["exclusiveMinimum", "more than", (value, bound) => value > bound],
  ["maximum", "at most", (value, bound) => value <= bound],
  ["exclusiveMaximum", "less than", (value, bound) => value < bound],
];

/** A short description of valid answers. */
export function hintOf({ kind, choices, required, schema }: Field): string {
  const { format } = schema;
  const words = [
    ...(choices === undefined ? [kindHint(kind, format)] : [listed(choices)]),
    ...bounds.map(([name, what]) => boundHint(what, schema[name])),
    ...(required ? [] : ["optional"]),
  ];
  return words.filter((word) => word !== "").join(", ");
}

function kindHint(kind: Field["kind"], format: JsonValue | undefined): string {
  if (kind === "string") return typeof format === "string" && Object.hasOwn(formats, format) ? line(format) : "";
  return kind === "boolean" ? "yes or no" : kind === "integer" ? "whole number" : kind;
}

/** Omits the bounds of safe integers, which schema libraries set for every integer. */
function boundHint(what: string, bound: JsonValue | undefined): string {
  return typeof bound === "number" && Math.abs(bound) < Number.MAX_SAFE_INTEGER ? `${what} ${bound}` : "";
}

function listed(choices: readonly JsonValue[]): string {
  const texts = choices.map(shown);
  return texts.length < 2 ? (texts[0] ?? "") : `${texts.slice(0, -1).join(", ")} or ${texts.at(-1)}`;
}

/** A value as users type it. */
export function shown(value: JsonValue): string {
  if (typeof value === "boolean") return value ? "yes" : "no";
  return line(typeof value === "object" ? JSON.stringify(value) : String(value), maxName);
}
