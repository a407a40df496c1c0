import {
  artifactSchema,
  check,
  isTaskState,
  messageSchema,
  streamResponseSchema,
  maxViolations,
  type FieldViolation,
  type Schema,
  type StreamResponse,
  type Message,
  type Part,
} from "../model/index.ts";
import { isObject } from "../model/schema.ts";
import type { AcceptedInput, AppendedEvent, MetadataPlace } from "../protocol/index.ts";
import type { ExtensionReader } from "./reads.ts";
import { misfits } from "./schemas.ts";
import { jsonTextOf } from "../base/json-text.ts";

/*
 * Checks the results of hooks. An extension may put data into metadata and parts. It may not add members to the objects of
 * the protocol, nor values to its enums (A2A 1.0, topic "Extensions").
 */

type Problems = readonly FieldViolation[];

/** Problems of an input that `onAccept` returned. */
export function inputProblems(returned: unknown): Problems {
  if (!isObject(returned)) return [{ field: "", description: "must be a message with metadata" }];
  const { message, metadata } = returned;
  return [
    ...unknownIn(returned, ["message", "metadata"]),
    ...shapeProblems(messageSchema, message, "message"),
    ...metadataProblems(metadata),
  ];
}

/** Problems of the message in a request that `onRequest` returned, except for problems that the message had before. */
function messageProblems(before: unknown, returned: unknown): Problems {
  const known = new Set(shapeProblems(messageSchema, before, "message").map(({ field }) => field));
  return shapeProblems(messageSchema, returned, "message").filter(({ field }) => !known.has(field));
}

/** Problems of an event that `onAppend` returned. */
export function eventProblems(returned: AppendedEvent): Problems {
  const own = membersOf[returned.kind];
  if (own === undefined) return [{ field: "kind", description: `must be one of ${Object.keys(membersOf).join(", ")}` }];
  const { state, message, artifact, metadata }: Readonly<Record<string, unknown>> = { ...returned };
  return [
    ...unknownIn(returned, own),
    ...(returned.kind === "status" && !isTaskState(state)
      ? [{ field: "state", description: `is not a state of a task: ${String(state)}` }]
      : []),
    // Members that the engine adds before it stores a message.
    ...(isObject(message)
      ? shapeProblems(messageSchema, { messageId: "m", role: "ROLE_AGENT", ...message }, "message")
      : []),
    ...(returned.kind === "artifact" ? shapeProblems(artifactSchema, artifact, "artifact") : []),
    ...metadataProblems(metadata),
  ];
}

/** Problems of an event or a task that `onDeliver` returned. */
export function deliveredProblems(returned: StreamResponse): Problems {
  return shapeProblems(streamResponseSchema, returned, "");
}

const membersOf: { readonly [Kind in AppendedEvent["kind"]]?: readonly string[] } = {
  status: ["kind", "state", "message", "metadata", "keep"],
  artifact: ["kind", "artifact", "append", "lastChunk", "metadata"],
  reply: ["kind", "message"],
};

/** Problems as one sentence. */
export function listed(problems: Problems): string {
  return problems.map(({ field, description }) => `${field} ${description}`.trim()).join("; ");
}

function metadataProblems(metadata: unknown): Problems {
  const fits = metadata === undefined || metadata === null || isObject(metadata);
  return fits ? [] : [{ field: "metadata", description: "must be an object" }];
}

/** Problems of an object of the protocol, including unknown members. */
function shapeProblems(schema: Schema<unknown>, value: unknown, path: string): Problems {
  const result = check(schema, value, "copy");
  if (result.ok) return added(value, result.value, path);
  return result.violations.map(({ field, description }) => ({ field: joined(path, field), description }));
}

function unknownIn(value: object, known: readonly string[]): Problems {
  return Object.keys(value)
    .filter((name) => !known.includes(name))
    .map((name) => ({ field: name, description: noMember }));
}

const noMember = "is not a member of the protocol: extensions put data into metadata and parts";

/** Members of a value that its copy does not have. Free JSON is the same in both, so it is not compared. */
function added(value: unknown, copy: unknown, path: string): Problems {
  if (value === copy) return [];
  if (Array.isArray(value) && Array.isArray(copy)) {
    return value.flatMap((item, at) => added(item, copy[at], `${path}[${at}]`));
  }
  if (!isObject(value) || !isObject(copy)) return [];
  return Object.entries(value).flatMap(([name, member]) => {
    // Absent in any of the forms that the protocol allows.
    if (member === undefined || member === null || member === "") return [];
    const field = joined(path, name);
    return Object.hasOwn(copy, name) ? added(member, copy[name], field) : [{ field, description: noMember }];
  });
}

function joined(path: string, name: string): string {
  return path === "" || name === "" || name.startsWith("[") ? path + name : `${path}.${name}`;
}

/** The ids and the role of a message, which no hook may change. */
export function changedIdentity(
  { message: before }: AcceptedInput,
  { message: after }: AcceptedInput,
): string | undefined {
  return (["messageId", "role", "taskId", "contextId"] as const).find((name) => before[name] !== after[name]);
}

/** The member that an extension of kind `data` has changed, although it may only add data. */
export function changedByAddition(before: AppendedEvent, after: AppendedEvent): string | undefined {
  const was: Readonly<Record<string, unknown>> = { ...before };
  const is: Readonly<Record<string, unknown>> = { ...after };
  const changed = ["kind", "state", "keep", "append", "lastChunk"].find((name) => was[name] !== is[name]);
  if (changed !== undefined || before.kind !== "artifact" || after.kind !== "artifact") return changed;
  return before.artifact.artifactId === after.artifact.artifactId ? undefined : "artifactId";
}

/* The values of an extension that do not fit their schemas, each with its path. */

/** Misfits in a message and the metadata of its request. */
export function misfitsOfInput(reader: ExtensionReader, { message, metadata }: AcceptedInput): Problems {
  return bounded([
    ...misfitsIn(reader, "request", metadata, "metadata"),
    ...misfitsOfMessage(reader, message, "message"),
  ]);
}

/** Misfits in an event of an agent. */
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

/** Members that a hook may change: of a request, and of its message. */
const freeInRequest = ["metadata", "message"];
const freeInMessage = ["metadata", "parts", "extensions"];

/**
 * Checks the request that `onRequest` returned. An extension may add data to a request, but not replace it.
 * @throws TypeError that describes the problem.
 */
export function checkedRequest<T extends object>(before: T, after: unknown): T {
  if (typeof after !== "object" || after === null)
    throw new TypeError(`It returned ${typeof after} in place of a request`);
  const changed = [...changes({ ...before }, { ...after }, freeInRequest, "")];
  if ("message" in before) {
    const message = "message" in after ? after.message : undefined;
    changed.push(...changes(before.message, message, freeInMessage, "message."));
    const problems = messageProblems(before.message, message);
    if (problems.length > 0) throw new TypeError(`It returned no valid message: ${listed(problems)}`);
  }
  const metadata = "metadata" in after ? after.metadata : undefined;
  if (metadata !== undefined && !isObject(metadata)) throw new TypeError("It returned metadata that is not an object");
  if (changed.length > 0)
    throw new TypeError(`It changed ${changed.join(", ")}: it may add data to metadata and parts`);
  // Values that are not JSON must fail here, where the extension is known.
  jsonTextOf(after);
  return after as T;
}

function changes(before: unknown, after: unknown, free: readonly string[], path: string): readonly string[] {
  const [was, is] = [isObject(before) ? before : {}, isObject(after) ? after : {}];
  const names = new Set([...Object.keys(was), ...Object.keys(is)]);
  const differs = (name: string): boolean => JSON.stringify(was[name]) !== JSON.stringify(is[name]);
  return [...names].filter((name) => !free.includes(name) && differs(name)).map((name) => path + name);
}
