import type { JsonObject, JsonValue } from "@parley/a2a/internal/model/index";
import { line } from "@parley/a2a/internal/base/display";
import type { Io } from "../io.ts";
import { longest } from "../output/text.ts";
import type { Choice, Field } from "./schema.ts";

/** A value, or why an answer is none. */
type Answer = { readonly value: JsonValue | undefined } | { readonly problem: string };

/**
 * Asks for each field of a form, until each answer can be one.
 *
 * @param before - What was answered before: the agent may ask again.
 * @returns the data; `undefined` where the user gave up.
 */
export async function fill(io: Io, fields: readonly Field[], before: JsonObject): Promise<JsonObject | undefined> {
  const given: (readonly [name: string, value: JsonValue])[] = [];
  for (const field of fields) {
    const initial = Object.hasOwn(before, field.name) ? before[field.name] : field.initial;
    const value = await ask(io, { ...field, initial });
    if (value === stopped) return undefined;
    if (value !== undefined) given.push([field.name, value]);
  }
  return Object.fromEntries(given);
}

/** The user has ended the form. */
const stopped = Symbol("stopped");

async function ask(io: Io, field: Field): Promise<JsonValue | undefined | typeof stopped> {
  const { description, initial, schema } = field;
  if (description !== undefined) io.stderr.write(`  ${line(description, longest.name)}\n`);
  const hint = hintOf(field);
  const standard = initial === undefined ? "" : ` [${shown(initial)}]`;
  const question = `  ${line(field.label, longest.name)}${hint === "" ? "" : ` (${hint})`}${standard}: `;
  for (;;) {
    const text = (await io.ask(question, { hidden: schema["format"] === "password" }))?.trim();
    if (text === undefined) return stopped;
    const answer = answerOf(field, text);
    if ("value" in answer) return answer.value;
    io.stderr.write(`  ${answer.problem}\n`);
  }
}

function answerOf(field: Field, text: string): Answer {
  const { initial, required, choices } = field;
  if (text === "" && initial !== undefined) return { value: initial };
  if (text === "") return required ? { problem: "It is required" } : { value: undefined };
  if (choices !== undefined) {
    const found = choices.find((each) => String(each) === text) ?? onlyLike(choices, text);
    return found === undefined ? { problem: `It must be ${listed(choices)}` } : { value: found };
  }
  return parsers[field.kind](text, field.schema);
}

/** A choice in other case. */
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

/** Patterns of an agent are left to the agent: a hostile one could run for ever. */
function stringOf(text: string, { minLength, maxLength, format }: JsonObject): Answer {
  const { length } = Array.from(text);
  if (typeof minLength === "number" && length < minLength)
    return { problem: `It must have at least ${minLength} characters` };
  if (typeof maxLength === "number" && length > maxLength)
    return { problem: `It must have at most ${maxLength} characters` };
  const known = typeof format === "string" && Object.hasOwn(formats, format) ? formats[format] : undefined;
  return known === undefined || known.fits(text) ? { value: text } : { problem: `It must be ${known.what}` };
}

/** Formats of texts that are checked (JSON Schema 2020-12 §7.3). */
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

/** Bounds of numbers, in words that a hint and a problem share. */
const bounds: readonly (readonly [name: string, what: string, fits: (value: number, bound: number) => boolean])[] = [
  ["minimum", "at least", (value, bound) => value >= bound],
  ["exclusiveMinimum", "more than", (value, bound) => value > bound],
  ["maximum", "at most", (value, bound) => value <= bound],
  ["exclusiveMaximum", "less than", (value, bound) => value < bound],
];

/** What an answer may be, in a few words. */
function hintOf({ kind, choices, required, schema }: Field): string {
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

/** Libraries say of every whole number that it is safe. */
function boundHint(what: string, bound: JsonValue | undefined): string {
  return typeof bound === "number" && Math.abs(bound) < Number.MAX_SAFE_INTEGER ? `${what} ${bound}` : "";
}

function listed(choices: readonly JsonValue[]): string {
  const texts = choices.map(shown);
  return texts.length < 2 ? (texts[0] ?? "") : `${texts.slice(0, -1).join(", ")} or ${texts.at(-1)}`;
}

function shown(value: JsonValue): string {
  if (typeof value === "boolean") return value ? "yes" : "no";
  return line(typeof value === "object" ? JSON.stringify(value) : String(value), longest.name);
}
