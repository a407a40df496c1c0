import {
  isDataPart,
  type JsonObject,
  type Part,
  type StandardSchema,
  type TaskStatus,
  type Message,
  type NewRecord,
  type TaskArtifactUpdateEvent,
  type TaskStatusUpdateEvent,
} from "../model/index.ts";
import type {
  AnyExtension,
  DataPartFields,
  MetadataField,
  MetadataFieldsByPlace,
  MetadataPlace,
} from "../protocol/index.ts";
import { fit, isSchema } from "./schemas.ts";
import { writtenValue } from "../base/json-text.ts";

/* The fields and parts of an extension, indexed for lookup. */

/** A value in a metadata map. */
interface MetadataEntry {
  readonly name: string;
  /** The first one is written, and all are read. */
  readonly keys: readonly [string, ...string[]];
  readonly schema: StandardSchema;
}

interface DataEntry {
  readonly name: string;
  readonly mediaType: string | undefined;
  readonly schema: StandardSchema;
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
      // The part is untrusted, so `matches` may throw.
      return false;
    }
  };
}

/** A media type without its parameters. */
export function bare(mediaType: string | undefined): string | undefined {
  return mediaType?.split(";", 1)[0]?.trim().toLowerCase();
}

/** Called with the name of a field whose value is omitted. `mistake`: its schema cannot be used. Absent: the value does not match. */
export type Misfit = (name: string, mistake?: TypeError) => void;

/** The values of fields in a metadata map: for each field, the first one under any of its keys that fits. */
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

/** The sub-state of a status: the first with the status's state whose value is in the metadata of the status message. */
export function subStateOf({ subStates = {} }: AnyExtension, status: TaskStatus | undefined): string | undefined {
  const metadata = status?.message?.metadata;
  if (metadata === undefined) return undefined;
  const found = Object.entries(subStates).find(([name, { state, key = name, value = true }]) => {
    return state === status?.state && Object.hasOwn(metadata, key) && metadata[key] === value;
  });
  return found?.[0];
}

/** Keys of metadata whose values may differ in a retry (`MetadataField.volatile`). */
export type VolatileKeys = ReadonlySet<string>;

/** Volatile keys of extensions, by their URI. Extensions without such keys are absent. */
export function volatileKeysOf(extensions: readonly AnyExtension[]): ReadonlyMap<string, VolatileKeys> {
  const keys = extensions.map(
    ({ uri, metadata = {} }) => [uri, new Set(keysIn(uri, metadata as MetadataFieldsByPlace))] as const,
  );
  return new Map(keys.filter(([, { size }]) => size > 0));
}

function keysIn(uri: string, metadata: MetadataFieldsByPlace): readonly string[] {
  return Object.values(metadata)
    .flatMap((fields) => Object.entries(fields ?? {}))
    .flatMap(([name, field]) => {
      const { volatile = false, key = `${uri}/${name}` } = field as Partial<MetadataField>;
      return volatile ? key : [];
    });
}

/** The keys of the active extensions; `undefined` if they have no keys. */
export function activeKeys(
  all: ReadonlyMap<string, VolatileKeys>,
  active: readonly string[],
): VolatileKeys | undefined {
  if (all.size === 0) return undefined;
  const found = active.flatMap((uri) => [...(all.get(uri) ?? [])]);
  return found.length === 0 ? undefined : new Set(found);
}

/** The message without volatile values. */
export function stableMessage(message: Message, keys: VolatileKeys | undefined): Message {
  return keys === undefined ? message : stable(message, keys);
}

/** The content of a record without volatile keys. Other records are unchanged. */
export function stableJson({ kind, json }: Pick<NewRecord, "kind" | "json">, keys: VolatileKeys): string {
  if (kind === "artifactUpdate") {
    const update = writtenValue<TaskArtifactUpdateEvent>(json);
    return JSON.stringify({ ...stable(update, keys), artifact: stable(update.artifact, keys) });
  }
  if (kind !== "statusUpdate") return json;
  const update = writtenValue<TaskStatusUpdateEvent>(json);
  const { message } = update.status;
  const status = message === undefined ? update.status : { ...update.status, message: stable(message, keys) };
  return JSON.stringify({ ...stable(update, keys), status });
}

function stable<T extends { readonly metadata?: JsonObject }>(object: T, keys: VolatileKeys): T {
  if (object.metadata === undefined || !Object.keys(object.metadata).some((key) => keys.has(key))) return object;
  const { metadata, ...rest } = object;
  const left = Object.entries(metadata).filter(([key]) => !keys.has(key));
  return (left.length === 0 ? rest : { ...rest, metadata: Object.fromEntries(left) }) as T;
}
