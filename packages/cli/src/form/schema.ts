import type { JsonObject, JsonValue, Message, Part } from "@parley/a2a/internal/model/index";

/* Forms that agents ask for, as JSON Schema. A stranger wrote them: what is not understood makes a form that is not asked for field by field. */

/** What a field may be. */
export type Kind = "string" | "number" | "integer" | "boolean";

/** One of the values that a field may have. */
export type Choice = string | number | boolean;

/** One field of a form. */
export interface Field {
  readonly name: string;
  /** What people call it. */
  readonly label: string;
  readonly description?: string | undefined;
  readonly kind: Kind;
  /** The only values that it may have. */
  readonly choices?: readonly Choice[] | undefined;
  readonly required: boolean;
  /** The value of an empty answer. */
  readonly initial?: JsonValue | undefined;
  /** Its schema, for what it may be. */
  readonly schema: JsonObject;
}

/** A form. */
export interface Form {
  /** Its fields. `undefined`: it has parts that cannot be asked for one by one. */
  readonly fields: readonly Field[] | undefined;
  /** Data that looks like what is wanted. `undefined`: the schema does not say. */
  readonly sample: JsonValue | undefined;
}

/** More fields are a file, and not questions. */
const maxFields = 50;

/** Whether a part is the form of a question: `turn.data()` of Parley sends it with its media type, other agents as a member of data. */
export function isForm(part: Part): boolean {
  return schemaIn(part) !== undefined;
}

/** The form that a question brings along. */
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
    // The agent can do without an optional field that cannot be asked for.
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

/** The schema of a value that may be null, without that. */
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

/** The only values, where there are any. Null is one of a field that may be left out. */
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

/** How deep the sample of a form is. */
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
