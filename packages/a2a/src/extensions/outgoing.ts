import { jsonTextOf } from "../base/json-text.ts";
import type { FieldViolation, Part, SendMessageRequest } from "../model/index.ts";
import type { MetadataPlace } from "../protocol/index.ts";
import { isObject } from "../model/schema.ts";
import type { ExtensionReader } from "./reads.ts";
import { listed, messageProblems } from "./results.ts";
import { misfits } from "./values.ts";

/* What a client sends: by its program, and by the hooks of its extensions. */

/** What of an extension's data in a send request does not fit. Values are not repeated: they may be secrets. */
export function wrongInRequest(reader: ExtensionReader, { message, metadata }: SendMessageRequest): FieldViolation[] {
  return [
    ...wrongMetadata(reader, "request", "metadata", metadata),
    ...wrongMetadata(reader, "message", "message.metadata", message.metadata),
    ...message.parts.flatMap((part, at) => wrongPart(reader, `message.parts[${at}]`, part)),
  ];
}

function wrongPart(reader: ExtensionReader, path: string, part: Part): readonly FieldViolation[] {
  const data = reader.fields.data.filter(({ matches }) => matches(part));
  return [
    ...wrongMetadata(reader, "part", `${path}.metadata`, part.metadata),
    ...data.flatMap(({ schema }) => misfits(schema, `${path}.data`, part.data)),
  ];
}

function wrongMetadata(
  { fields }: ExtensionReader,
  place: MetadataPlace,
  path: string,
  metadata: Readonly<Record<string, unknown>> = {},
): readonly FieldViolation[] {
  return (fields.metadata.get(place) ?? []).flatMap(({ keys, schema }) =>
    keys
      .filter((key) => Object.hasOwn(metadata, key))
      .flatMap((key) => misfits(schema, `${path}[${JSON.stringify(key)}]`, metadata[key])),
  );
}

/** Members that a hook may change: of a request, and of its message. */
const ofRequest = ["metadata", "message"];
const ofMessage = ["metadata", "parts", "extensions"];

/**
 * What `onRequest` has returned, in place of a request. An extension adds data to a request: it makes no other request of it.
 *
 * @throws TypeError that says what is wrong.
 */
export function checkedRequest<T extends object>(before: T, after: unknown): T {
  if (typeof after !== "object" || after === null) throw new TypeError(`It returned ${typeof after}, and no request`);
  const changed = [...changes(before, after, ofRequest, "")];
  if ("message" in before) {
    const { message } = after as { readonly message?: unknown };
    changed.push(...changes(before.message as object, message ?? {}, ofMessage, "message."));
    const problems = messageProblems(before.message, message);
    if (problems.length > 0) throw new TypeError(`It returned no valid message: ${listed(problems)}`);
  }
  const { metadata } = after as { readonly metadata?: unknown };
  if (metadata !== undefined && !isObject(metadata)) throw new TypeError("It returned metadata that is no object");
  if (changed.length > 0)
    throw new TypeError(`It changed ${changed.join(", ")}: it may add data to metadata and parts`);
  // What is no JSON must fail here, where the extension is known.
  jsonTextOf(after);
  return after as T;
}

function changes(before: object, after: object, free: readonly string[], path: string): readonly string[] {
  const names = new Set([...Object.keys(before), ...Object.keys(after)]);
  const differs = (name: string): boolean =>
    JSON.stringify(before[name as never]) !== JSON.stringify(after[name as never]);
  return [...names].filter((name) => !free.includes(name) && differs(name)).map((name) => path + name);
}
