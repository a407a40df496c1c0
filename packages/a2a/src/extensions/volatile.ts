import type { JsonObject, Message, NewRecord, TaskArtifactUpdateEvent, TaskStatusUpdateEvent } from "../model/index.ts";
import type { AnyExtension, MetadataField, MetadataFieldsByPlace } from "../protocol/index.ts";

/** Keys of metadata whose values are of the moment (`MetadataField.volatile`). */
export type VolatileKeys = ReadonlySet<string>;

/** Keys of extensions, by their URI; those without any are absent. */
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

/** The keys of the active extensions; `undefined` where there are none. */
export function activeKeys(
  all: ReadonlyMap<string, VolatileKeys>,
  active: readonly string[],
): VolatileKeys | undefined {
  if (all.size === 0) return undefined;
  const found = active.flatMap((uri) => [...(all.get(uri) ?? [])]);
  return found.length === 0 ? undefined : new Set(found);
}

/** A message without them. */
export function stableMessage(message: Message, keys: VolatileKeys | undefined): Message {
  return keys === undefined ? message : stable(message, keys);
}

/** The content of a record without them; other records as they are. */
export function stableJson({ kind, json }: Pick<NewRecord, "kind" | "json">, keys: VolatileKeys): string {
  if (kind === "artifactUpdate") {
    const update = JSON.parse(json) as TaskArtifactUpdateEvent;
    return JSON.stringify({ ...stable(update, keys), artifact: stable(update.artifact, keys) });
  }
  if (kind !== "statusUpdate") return json;
  const update = JSON.parse(json) as TaskStatusUpdateEvent;
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
