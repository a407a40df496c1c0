import { utf8Length } from "@parley/a2a/internal/base/index";
import { nestsDeeper } from "@parley/a2a/internal/base/json-text";
import {
  type Content,
  isDataPart,
  type JsonValue,
  type Part,
  partsOf,
  type StandardSchema,
} from "@parley/a2a/internal/model/index";
import { isObject } from "@parley/a2a/internal/model/schema";
import { MessageRefused, type TurnBase } from "@parley/a2a/internal/protocol/index";
import { checkData, dataInParts, type FoundData } from "@parley/a2a/internal/schema/data";
import { storedJson } from "@parley/a2a/internal/base/json";

/** The first value in a message that fits a schema. */
export async function messageData<Output>(
  { message, acceptedOutputModes }: Pick<TurnBase, "message" | "acceptedOutputModes">,
  schema: StandardSchema<Output>,
  ask: Content | undefined,
): Promise<Output> {
  const found = dataInParts(message.parts, "message.parts");
  const checked = await checkData(found.length === 0 && ask !== undefined ? objectInText(message) : found, schema);
  if (checked.fits) return checked.value;
  const missing = [{ field: "message.parts", description: "has no data part" }];
  const question = ask === undefined ? undefined : withForm(partsOf(ask), schema, acceptedOutputModes);
  throw new MessageRefused(checked.fields.length === 0 ? missing : checked.fields, { ask: question });
}

/** The default of `limits.depth`. */
const maxDepth = 64;

/** The JSON object in a message that is a single text, because many clients can send only text. */
function objectInText({ parts }: TurnBase["message"]): readonly FoundData[] {
  const [part, ...others] = parts;
  const text = part?.text?.trim() ?? "";
  if (others.length > 0 || !text.startsWith("{") || nestsDeeper(text, maxDepth)) return [];
  try {
    const value: unknown = JSON.parse(text);
    return [{ field: "message.parts[0].text", value }];
  } catch {
    return [];
  }
}

/** The media type of JSON Schema (draft 2020-12 §14.1). */
const mediaType = "application/schema+json";

/** Larger forms could exceed an event. */
const maxBytes = 64 << 10;

/** Libraries that export JSON Schema have this member (Standard JSON Schema, https://standardschema.dev/json-schema). */
interface GivesJsonSchema {
  readonly jsonSchema?: { readonly input?: (options: { readonly target: string }) => unknown };
}

/**
 * Adds the JSON Schema of the expected data to a question, as a part. The question stays unchanged if it already has data, if the
 * library exports no JSON Schema, or if the client reads only text.
 *
 * @param modes - `acceptedOutputModes` of the request.
 */
function withForm(ask: readonly Part[], schema: StandardSchema, modes: readonly string[]): readonly Part[] {
  if (ask.some(isDataPart) || !accepts(modes)) return ask;
  const form = jsonSchemaOf(schema);
  return form === undefined ? ask : [...ask, { data: form, mediaType }];
}

const formJson = storedJson<JsonValue>();

function jsonSchemaOf(schema: StandardSchema): JsonValue | undefined {
  const { jsonSchema }: (typeof schema)["~standard"] & GivesJsonSchema = schema["~standard"];
  try {
    const text: string | undefined = JSON.stringify(jsonSchema?.input?.({ target: "draft-2020-12" }));
    if (text === undefined || utf8Length(text) > maxBytes) return undefined;
    const form = formJson.read(text);
    return isObject(form) ? form : undefined;
  } catch {
    // Libraries throw for types that JSON Schema cannot express, such as `Date`.
    return undefined;
  }
}

/** Whether a client reads JSON Schema. A client that names no media types accepts any. */
function accepts(modes: readonly string[]): boolean {
  return modes.length === 0 || modes.some((mode) => json.test(mode));
}

const json = /^\s*(\*|\*\/\*|application\/\*|application\/json|application\/schema\+json)\s*(;|$)/i;
