import {
  artifactSchema,
  check,
  isTaskState,
  messageSchema,
  streamResponseSchema,
  type FieldViolation,
  type Schema,
  type StreamResponse,
} from "../model/index.ts";
import { isObject } from "../model/schema.ts";
import type { AcceptedInput, AppendedEvent } from "../protocol/index.ts";

/*
 * What a hook returned. An extension may put data into metadata and parts. It may not add members to the objects of the protocol, nor
 * values to its enums (A2A 1.0, topic "Extensions").
 */

type Problems = readonly FieldViolation[];

/** What is wrong with an input that `onAccept` returned. */
export function inputProblems(returned: unknown): Problems {
  if (!isObject(returned)) return [{ field: "", description: "is no message with metadata" }];
  const { message, metadata } = returned;
  return [
    ...unknownIn(returned, ["message", "metadata"]),
    ...shapeProblems(messageSchema, message, "message"),
    ...metadataProblems(metadata),
  ];
}

/** What is wrong with the message of a request that `onRequest` returned, and was not wrong before. */
export function messageProblems(before: unknown, returned: unknown): Problems {
  const known = new Set(shapeProblems(messageSchema, before, "message").map(({ field }) => field));
  return shapeProblems(messageSchema, returned, "message").filter(({ field }) => !known.has(field));
}

/** What is wrong with an event that `onAppend` returned. */
export function eventProblems(returned: AppendedEvent): Problems {
  const own = membersOf[returned.kind];
  if (own === undefined) return [{ field: "kind", description: `must be one of ${Object.keys(membersOf).join(", ")}` }];
  const { state, message, artifact, metadata } = returned as Readonly<Record<string, unknown>>;
  return [
    ...unknownIn(returned, own),
    ...(returned.kind === "status" && !isTaskState(state)
      ? [{ field: "state", description: `is no state of a task: ${String(state)}` }]
      : []),
    // What the engine adds to a message before it is stored.
    ...(isObject(message)
      ? shapeProblems(messageSchema, { messageId: "m", role: "ROLE_AGENT", ...message }, "message")
      : []),
    ...(returned.kind === "artifact" ? shapeProblems(artifactSchema, artifact, "artifact") : []),
    ...metadataProblems(metadata),
  ];
}

/** What is wrong with an event or a task that `onDeliver` returned. */
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

/** What is wrong with an object of the protocol, members that it does not have among them. */
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

const noMember = "is no member that the protocol has: extensions put data into metadata and parts";

/** Members of a value that its copy does not have. Free JSON is the same in both, and is not looked at. */
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

/** What of an event an extension has changed that may add data alone. */
export function changedByAddition(before: AppendedEvent, after: AppendedEvent): string | undefined {
  const [was, is] = [before, after] as Readonly<Record<string, unknown>>[];
  const changed = ["kind", "state", "keep", "append", "lastChunk"].find((name) => was?.[name] !== is?.[name]);
  if (changed !== undefined || before.kind !== "artifact" || after.kind !== "artifact") return changed;
  return before.artifact.artifactId === after.artifact.artifactId ? undefined : "artifactId";
}
