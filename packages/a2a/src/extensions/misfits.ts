import { maxViolations, type FieldViolation, type Message, type Part } from "../model/index.ts";
import { isObject } from "../model/schema.ts";
import type { AcceptedInput, AppendedEvent, MetadataPlace } from "../protocol/index.ts";
import type { ExtensionReader } from "./reads.ts";
import { misfits } from "./values.ts";

/* The values of an extension that do not fit their schemas, each with its path. */

type Problems = readonly FieldViolation[];

/** In a message and the metadata of its request. */
export function misfitsOfInput(reader: ExtensionReader, { message, metadata }: AcceptedInput): Problems {
  return bounded([
    ...misfitsIn(reader, "request", metadata, "metadata"),
    ...misfitsOfMessage(reader, message, "message"),
  ]);
}

/** In an event of an agent. */
export function misfitsOfEvent(reader: ExtensionReader, event: AppendedEvent): Problems {
  switch (event.kind) {
    case "reply":
      return bounded(misfitsOfMessage(reader, event.message, "message"));
    case "status":
      return bounded([
        ...misfitsIn(reader, "statusUpdate", event.metadata, "metadata"),
        ...(event.message === undefined ? [] : misfitsOfMessage(reader, event.message, "message")),
      ]);
    case "artifact":
      return bounded([
        ...misfitsIn(reader, "artifactUpdate", event.metadata, "metadata"),
        ...misfitsIn(reader, "artifact", event.artifact.metadata, "artifact.metadata"),
        ...misfitsOfParts(reader, event.artifact.parts, "artifact.parts"),
      ]);
    default:
      return [];
  }
}

function misfitsOfMessage(
  reader: ExtensionReader,
  { metadata, parts }: Pick<Message, "metadata" | "parts">,
  path: string,
): Problems {
  return [
    ...misfitsIn(reader, "message", metadata, `${path}.metadata`),
    ...misfitsOfParts(reader, parts, `${path}.parts`),
  ];
}

function misfitsOfParts(reader: ExtensionReader, parts: readonly Part[], path: string): Problems {
  const { metadata, data } = reader.fields;
  if (data.length === 0 && !metadata.has("part")) return [];
  return parts.flatMap((part, at) => [
    ...misfitsIn(reader, "part", part.metadata, `${path}[${at}].metadata`),
    ...data
      .filter(({ matches }) => matches(part))
      .flatMap(({ schema }) => misfits(schema, `${path}[${at}].data`, part.data)),
  ]);
}

function misfitsIn({ fields }: ExtensionReader, place: MetadataPlace, metadata: unknown, path: string): Problems {
  const entries = fields.metadata.get(place);
  if (entries === undefined || !isObject(metadata)) return [];
  return entries.flatMap(({ keys, schema }) =>
    keys
      .filter((key) => Object.hasOwn(metadata, key))
      .flatMap((key) => misfits(schema, `${path}[${JSON.stringify(key)}]`, metadata[key])),
  );
}

function bounded(problems: Problems): Problems {
  return problems.slice(0, maxViolations);
}
