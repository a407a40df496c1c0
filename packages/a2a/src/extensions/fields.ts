import { isDataPart, type JsonObject, type Part, type StandardSchema, type TaskStatus } from "../model/index.ts";
import type {
  AnyExtension,
  DataPartFields,
  MetadataField,
  MetadataFieldsByPlace,
  MetadataPlace,
} from "../protocol/index.ts";
import { fit, isSchema } from "./values.ts";

/* What an extension puts into metadata and parts, in the form in which it is looked up. */

/** A value in a metadata map. */
export interface MetadataEntry {
  /** The name for agents and clients. */
  readonly name: string;
  /** The first one is written, any is read. */
  readonly keys: readonly [string, ...string[]];
  readonly schema: StandardSchema;
}

/** Data parts of one name. */
export interface DataEntry {
  readonly name: string;
  readonly mediaType: string | undefined;
  readonly schema: StandardSchema;
  /** Whether a part is one of these. */
  readonly matches: (part: Part) => boolean;
}

/** The fields of an extension. */
export interface ExtensionFields {
  /** By place. A place without fields is absent. */
  readonly metadata: ReadonlyMap<MetadataPlace, readonly MetadataEntry[]>;
  readonly data: readonly DataEntry[];
}

/** The fields of an extension. */
export function fieldsOf({ uri, metadata = {}, data = {} }: AnyExtension): ExtensionFields {
  const places = Object.entries(metadata as MetadataFieldsByPlace).map(([place, fields]) => {
    const entries = Object.entries(fields).map(([name, field]) => metadataEntry(uri, name, field));
    return [place as MetadataPlace, entries] as const;
  });
  return {
    metadata: new Map(places.filter(([, entries]) => entries.length > 0)),
    data: Object.entries(data as DataPartFields).map(([name, { matches, mediaType, schema }]) => ({
      name,
      mediaType,
      schema,
      matches: matching(matches, mediaType),
    })),
  };
}

function metadataEntry(uri: string, name: string, field: MetadataField | StandardSchema): MetadataEntry {
  const own: Partial<MetadataField> = isSchema(field) ? { schema: field } : field;
  const { key = `${uri}/${name}`, schema } = own;
  const keys = typeof key === "string" ? ([key] as const) : key;
  return { name, keys, schema: schema as StandardSchema };
}

function matching(matches: ((part: Part) => boolean) | undefined, mediaType: string | undefined) {
  if (matches === undefined) return (part: Part) => isDataPart(part) && bare(part.mediaType) === bare(mediaType);
  return (part: Part) => {
    try {
      return isDataPart(part) && matches(part);
    } catch {
      // The part may come from a stranger.
      return false;
    }
  };
}

/** A media type without its parameters. */
export function bare(mediaType: string | undefined): string | undefined {
  return mediaType?.split(";", 1)[0]?.trim().toLowerCase();
}

/** Called with the name of a field whose value is left out. `mistake`: its schema cannot be used. Absent: the value does not fit. */
export type Misfit = (name: string, mistake?: TypeError) => void;

/** The values of fields in a metadata map: of each the first that fits, under any of its keys. */
export function valuesIn(
  entries: readonly MetadataEntry[] | undefined,
  metadata: JsonObject | undefined,
  misfit: Misfit,
): Readonly<Record<string, unknown>> {
  const values: Record<string, unknown> = {};
  if (entries === undefined || metadata === undefined) return values;
  for (const { name, keys, schema } of entries) {
    for (const key of keys) {
      if (!Object.hasOwn(metadata, key)) continue;
      const found = fitting(schema, metadata[key], key, (mistake) => misfit(name, mistake));
      if (found.length === 0) continue;
      values[name] = found[0];
      break;
    }
  }
  return values;
}

/** The values of data parts that fit, by name, in the order of the parts. */
export function dataIn(
  entries: readonly DataEntry[],
  parts: readonly Part[],
  misfit: Misfit,
): Readonly<Record<string, readonly unknown[]>> {
  return Object.fromEntries(
    entries.map(({ name, schema, matches }) => [
      name,
      parts.filter(matches).flatMap(({ data }) => fitting(schema, data, name, (mistake) => misfit(name, mistake))),
    ]),
  );
}

/** The value, where it fits. */
function fitting(
  schema: StandardSchema,
  value: unknown,
  field: string,
  misfit: (mistake?: TypeError) => void,
): readonly unknown[] {
  let mistake: TypeError | undefined;
  try {
    const result = fit(schema, value, field);
    if (result.ok) return [result.value];
  } catch (thrown) {
    mistake = thrown as TypeError;
  }
  misfit(mistake);
  return [];
}

/** The sub-state of a status: the first one whose state it has, and whose value is in the metadata of its message. */
export function subStateOf({ subStates = {} }: AnyExtension, status: TaskStatus | undefined): string | undefined {
  const metadata = status?.message?.metadata;
  if (metadata === undefined) return undefined;
  const found = Object.entries(subStates).find(([name, { state, key = name, value = true }]) => {
    return state === status?.state && Object.hasOwn(metadata, key) && metadata[key] === value;
  });
  return found?.[0];
}
