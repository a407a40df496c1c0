import {
  A2AError,
  withFields,
  type Artifact,
  type Message,
  type Part,
  type SendMessageResponse,
  type StandardSchema,
  type StreamResponse,
  type Task,
  maxViolations,
  type FieldViolation,
  type SchemaIssue,
  type SchemaResult,
  bytesOf,
  isDataPart,
  isRawPart,
  isTextPart,
} from "../model/index.ts";
import { line } from "../base/display.ts";

/* Data in parts, checked by a schema of the user's own library (Standard Schema). */

/** The sources of `dataOf()`: the answer of a send, an event of a stream, a task, a message, an artifact, or parts. */
export type DataSource = SendMessageResponse | Partial<StreamResponse> | Task | Message | Artifact | readonly Part[];

/**
 * The data of an answer, checked and typed by a schema of zod, valibot, ArkType or any other Standard Schema library. Returns the first matching
 * value: in a message or an artifact in the order of the parts, in a task from the newest artifact to the oldest, and then in the message of its
 * status. Reads data parts, and texts and files whose media type is JSON.
 *
 * @throws A2AError `InvalidResponse` if no data matches the schema. Its `fields` have the reasons, with paths such as
 * `task.artifacts[0].parts[0].data.amount`.
 *
 * @example
 * ```ts
 * import * as z from "zod";
 *
 * const Forecast = z.object({ city: z.string(), degrees: z.number() });
 * const response = await client.sendMessage("Will it rain in Basel?");
 * const { degrees } = await dataOf(response, Forecast);
 * ```
 */
export async function dataOf<Output>(source: DataSource, schema: StandardSchema<Output>): Promise<Output> {
  const found = listsOf(source).flatMap(([path, parts]) => dataInParts(parts, path));
  const checked = await checkData(found, schema);
  if (checked.fits) return checked.value;
  const { fields } = checked;
  const text = fields.length === 0 ? "The answer has no data" : withFields("The answer has other data", fields);
  throw new A2AError("InvalidResponse", text, { fields });
}

/** Lists of parts with their paths, in the order in which they are searched. */
type PartList = readonly [path: string, parts: readonly Part[]];

function listsOf(source: DataSource): readonly PartList[] {
  if (isParts(source)) return [["parts", source]];
  if ("messageId" in source) return [["message.parts", source.parts]];
  if ("artifactId" in source) return [["artifact.parts", source.parts]];
  if ("status" in source) return listsOfTask(source);
  const { task, message, statusUpdate, artifactUpdate } = source as Partial<StreamResponse>;
  if (task !== undefined) return listsOfTask(task);
  if (message !== undefined) return [["message.parts", message.parts]];
  if (artifactUpdate !== undefined) return [["artifactUpdate.artifact.parts", artifactUpdate.artifact.parts]];
  return [["statusUpdate.status.message.parts", statusUpdate?.status.message?.parts ?? []]];
}

function listsOfTask({ artifacts = [], status }: Task): readonly PartList[] {
  return [
    ...artifacts.map(({ parts }, at): PartList => [`task.artifacts[${at}].parts`, parts]).toReversed(),
    ["task.status.message.parts", status.message?.parts ?? []],
  ];
}

function isParts(source: DataSource): source is readonly Part[] {
  return Array.isArray(source);
}

/** The first matching value, or the reasons why no value matches: no fields if there was no value at all. */
export type DataCheck<Output> =
  | { readonly fits: true; readonly value: Output }
  | { readonly fits: false; readonly fields: readonly FieldViolation[] };

/**
 * Looks for the first value that fits a schema. Violations of other values are shortened, cleaned, and without the values,
 * which are untrusted and may be secrets.
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
    // A copy, because some libraries set defaults in the value itself, which is part of a stored message.
    const result: SchemaResult<Output> | undefined = await schema["~standard"].validate(structuredClone(rest.value));
    if (typeof result !== "object" || result === null || !isListOrAbsent(result.issues)) {
      throw new TypeError("A schema returned neither a value nor a list of issues");
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

/** Maximum length of a field's description, in characters. */
const longest = 200;
/** Maximum number of steps in a path inside a value. */
const deepest = 16;

/** A schema's message about the value at `field`: shortened, cleaned, and without the value. */
export function violation(field: string, value: unknown, { message, path = [] }: SchemaIssue): FieldViolation {
  const keys = path.slice(0, deepest).map((step) => (typeof step === "object" ? step.key : step));
  let at: unknown = value;
  let place = field;
  for (const key of keys) {
    place += Array.isArray(at) && Number.isInteger(Number(key)) ? `[${String(key)}]` : memberPath(key);
    at = typeof at === "object" && at !== null && Object.hasOwn(at, key) ? Reflect.get(at, key) : undefined;
  }
  return { field: place, description: `does not fit: ${line(withoutValues(String(message), at), longest)}` };
}

/** Names that are shown unchanged. Others may hold anything. */
const plainName = /^[\w$-]{1,64}$/;

function memberPath(key: PropertyKey): string {
  const name = String(key);
  return plainName.test(name) ? `.${name}` : `["…"]`;
}

/** Maximum members of a value that are searched for texts. */
const maxMembers = 1000;

/** A message of a schema without the texts of the value, because some libraries repeat them in quotes. */
function withoutValues(message: string, value: unknown): string {
  if (typeof value === "string") return value === "" ? message : hidden(message, value);
  const texts = new Set<string>();
  const known = textsOf(value, texts, { left: maxMembers });
  // If a value has too many members, all quotes are removed.
  return message.replace(/"(?:[^"\\]|\\.)*("|$)/g, (quoted) => {
    const inside = quoted.slice(1, quoted.endsWith('"') && quoted.length > 1 ? -1 : undefined);
    return known && !texts.has(inside) && !texts.has(unescaped(inside)) ? quoted : '"…"';
  });
}

function hidden(message: string, value: string): string {
  const written = JSON.stringify(value);
  // A short text without quotes could also be a part of the message's own words.
  const bare = value.length > 3 ? [written.slice(1, -1), value] : [];
  const forms = [written, `"${value}"`, `'${value}'`, `\`${value}\``, ...bare];
  return forms.reduce((text, form) => text.replaceAll(form, form === value ? "…" : '"…"'), message);
}

/** Collects the texts in a value, and its member names that are not plain. `false`: there are too many. */
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

/** A JSON value in a part, with its path. */
export interface FoundData {
  /** Path of the value, such as `message.parts[0].data`. */
  readonly field: string;
  /** The value; absent if the part declares JSON but is not JSON. */
  readonly value?: unknown;
}

/**
 * The JSON of parts, in their order: data parts, and texts and files that are JSON by their media type. Text that is not
 * declared as JSON is ignored.
 *
 * @param path - Path of the list, such as `message.parts`.
 */
export function dataInParts(parts: readonly Part[], path: string): readonly FoundData[] {
  return parts.flatMap((part, at) => {
    const place = `${path}[${at}]`;
    if (isDataPart(part)) return [{ field: `${place}.data`, value: part.data }];
    if (!isJson(part.mediaType)) return [];
    if (isTextPart(part)) return [parsed(`${place}.text`, () => part.text)];
    if (isRawPart(part)) return [parsed(`${place}.raw`, () => utf8.decode(bytesOf(part)))];
    return [];
  });
}

const utf8 = new TextDecoder("utf-8", { fatal: true });

function parsed(field: string, read: () => string): FoundData {
  try {
    const value: unknown = JSON.parse(read());
    return { field, value };
  } catch {
    return { field };
  }
}

/** `application/json`, or a type whose format is JSON (RFC 6839 §3.1), with any parameters. */
function isJson(mediaType = ""): boolean {
  return /^\s*(application\/json|[\w.+-]+\/[\w.+-]+\+json)\s*(;|$)/i.test(mediaType);
}
