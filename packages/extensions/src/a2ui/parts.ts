import { utf8Length } from "@parley/a2a/internal/base/bytes";
import type { Artifact, JsonObject, JsonValue, Message, Part, StreamResponse } from "@parley/a2a/internal/model/index";
import type { Logger } from "@parley/a2a/internal/base/index";
import type { AppendedEvent } from "@parley/a2a/internal/protocol/index";
import { isJsonList, isJsonObject } from "../shared/values.ts";
import { type A2uiProblem, type A2uiServerMessageOf, type A2uiVersion, mediaTypes, versions } from "./messages.ts";
import { serverMessage, type Check, type Fault } from "./schemas.ts";

/* Data parts of A2UI: converts messages to parts, and untrusted parts to messages. */

const maxDepth = 64;

/** Maximum number of problems of an event, which may have a million invalid messages. */
export const maxProblems = 100;

const kinds08 = ["beginRendering", "surfaceUpdate", "dataModelUpdate", "userAction"];

/** The media type of a part, without parameters. A2UI has it in the metadata, A2A 1.0 also in `mediaType`. */
function mediaTypeOf({ mediaType: member, metadata }: Part): string {
  const mediaType = metadata?.["mimeType"] ?? member;
  return typeof mediaType === "string" ? (mediaType.split(";", 1)[0] ?? "").trim().toLowerCase() : "";
}

/** Whether a part has messages of this version. A part without a recognizable version belongs to all versions. */
export function isPartOf(version: A2uiVersion, part: Part): boolean {
  if (part.data === undefined || !mediaTypes.includes(mediaTypeOf(part))) return false;
  const named = versionsIn(part.data);
  return named.size === 0 || versionsOf(version).some((name) => named.has(name));
}

/** Messages of 0.8 have no version. */
function versionsOf(version: A2uiVersion): readonly string[] {
  const { versions: names } = versions[version];
  return names.length === 0 ? [""] : names;
}

const everyVersion = new Set(Object.values(versions).flatMap((facts) => facts.versions));

function versionsIn(data: unknown): ReadonlySet<string> {
  const named = new Set<string>();
  for (const message of isJsonList(data) ? data : [data]) {
    if (!isJsonObject(message)) continue;
    const { version } = message;
    if (typeof version === "string") {
      if (everyVersion.has(version)) named.add(version);
    } else if (kinds08.some((kind) => Object.hasOwn(message, kind))) named.add("");
  }
  return named;
}

/** Checks a part, but not its messages: it must hold a list (in 0.8 also one message) of limited size and depth. */
export function checkEnvelope(version: A2uiVersion, maxBytes: number): Check {
  const single = versions[version].versions.length === 0;
  return (data) => {
    if (!Array.isArray(data) && !(single && isJsonObject(data)))
      return fault(single ? "must be a message, or an array of messages" : "must be an array of messages");
    if (isDeeper(data, maxDepth)) return fault(`must not have more than ${maxDepth} levels`);
    return bytesOf(data) > maxBytes ? fault(`must not be larger than ${maxBytes} bytes`) : undefined;
  };
}

const fault = (message: string): Fault => ({ path: "", message });

function bytesOf(value: unknown): number {
  return utf8Length(JSON.stringify(value) ?? "");
}

function isDeeper(value: unknown, levels: number): boolean {
  if (typeof value !== "object" || value === null) return false;
  return levels === 0 || Object.values(value).some((member) => isDeeper(member, levels - 1));
}

export interface ReadMessages<Message> {
  /** The valid messages, in order. */
  readonly messages: readonly Message[];
  /** The problems of the other messages: the first 100. */
  readonly problems: readonly A2uiProblem[];
}

/**
 * Checks the messages of a list one by one: an invalid one is reported as a problem, and the others still apply (A2UI,
 * "Processing Rules").
 */
export function readMessages<Message>(check: Check, data: unknown): ReadMessages<Message> {
  const messages: Message[] = [];
  const problems: A2uiProblem[] = [];
  for (const [index, message] of (isJsonList(data) ? data : [data]).entries()) {
    const found = check(message);
    if (found === undefined) messages.push(message as Message);
    else if (problems.length < maxProblems)
      problems.push({ index, path: found.path, message: found.message, ...surfaceOf(message) });
  }
  return { messages, problems };
}

/** The surface of a message of any shape. */
export function surfaceOf(message: unknown): { readonly surfaceId?: string } {
  for (const content of isJsonObject(message) ? Object.values(message) : []) {
    const surfaceId = isJsonObject(content) ? content["surfaceId"] : undefined;
    if (typeof surfaceId === "string") return { surfaceId };
  }
  return {};
}

export function readParts<Message>(
  version: A2uiVersion,
  check: Check,
  maxBytes: number,
  parts: readonly Part[],
): ReadMessages<Message> {
  const envelope = checkEnvelope(version, maxBytes);
  const messages: Message[] = [];
  const problems: A2uiProblem[] = [];
  for (const part of parts) {
    if (!isPartOf(version, part)) continue;
    const wrong = envelope(part.data);
    if (wrong !== undefined) problems.push({ index: 0, ...wrong });
    else {
      const read = readMessages<Message>(check, part.data);
      for (const message of read.messages) messages.push(message);
      problems.push(...read.problems);
    }
  }
  return { messages, problems: problems.slice(0, maxProblems) };
}

/**
 * One part with all messages; in 0.8 one part per message.
 *
 * @throws TypeError for an invalid message or a part that is too large.
 */
export function writeParts(
  version: A2uiVersion,
  check: Check,
  maxBytes: number,
  messages: readonly object[],
): readonly Part[] {
  // Drops `undefined`, as the wire does.
  const plain = JSON.parse(JSON.stringify(messages)) as readonly JsonObject[];
  if (versions[version].versions.length > 0) return [partWith(version, check, maxBytes, plain)];
  return plain.map((message, at) => partWith(version, check, maxBytes, message, at));
}

/** The part with one message. Throws as `writeParts()` does. */
export function writePart(version: A2uiVersion, check: Check, maxBytes: number, message: object): Part {
  const plain = JSON.parse(JSON.stringify(message)) as JsonObject;
  return partWith(version, check, maxBytes, versions[version].versions.length === 0 ? plain : [plain]);
}

/** `first`: index of the first message, for errors. */
function partWith(version: A2uiVersion, check: Check, maxBytes: number, data: JsonValue, first = 0): Part {
  const wrong = checkEnvelope(version, maxBytes)(data);
  if (wrong !== undefined) throw new TypeError(`A part of A2UI ${wrong.message}`);
  const [problem] = readMessages(check, data).problems;
  if (problem !== undefined)
    throw new TypeError(
      `Message ${first + problem.index} is not a message of A2UI ${version}: ${problem.path} ${problem.message}`,
    );
  const { mediaType } = versions[version];
  return { data, mediaType, metadata: { mimeType: mediaType } };
}

/* Outgoing messages of an agent, which may come from a model. */

/** The logger for dropped messages, and the fields of its records. */
export interface DropLog {
  readonly logger: Logger;
  readonly uri: string;
  readonly taskId: string;
}

/** Longest path in a log entry, in characters: member names may be a megabyte long. */
const longestPath = 200;

/** Logs only the first dropped messages, because there may be any number. */
export function report({ logger, ...facts }: DropLog, text: string, problems: readonly A2uiProblem[]): void {
  for (const { path, message } of problems.slice(0, 5)) {
    logger.warn(text, { ...facts, path: path.slice(0, longestPath), problem: message });
  }
}

interface RightEvent {
  readonly event: AppendedEvent;
  readonly problems: readonly A2uiProblem[];
}

/** Drops invalid messages from an event. Events of another agent pass unchanged, because clients check them anyway. */
export function onlyRight(version: A2uiVersion, maxBytes: number, event: AppendedEvent): RightEvent {
  if (event.kind === "delegated") return { event, problems: [] };
  const content = event.kind === "artifact" ? event.artifact : event.message;
  const read = content?.parts.map((part) => rightPart(version, maxBytes, part)) ?? [];
  const problems = read.flatMap((one) => one.problems);
  if (problems.length === 0) return { event, problems };
  const right = { ...content, parts: read.map(({ part }) => part) };
  return { event: { ...event, [event.kind === "artifact" ? "artifact" : "message"]: right }, problems };
}

/** A part without valid messages remains as an empty list, because an artifact has at least one part. */
function rightPart(version: A2uiVersion, maxBytes: number, part: Part) {
  if (!isPartOf(version, part)) return { part, problems: [] };
  const { messages, problems } = readParts<JsonObject>(version, serverMessage[version], maxBytes, [part]);
  return { part: problems.length === 0 ? part : ({ ...part, data: messages } as Part), problems };
}

/* Incoming messages of a client. */

/** The A2UI messages of one A2A message or one artifact. */
export interface A2uiPiece<Version extends A2uiVersion = A2uiVersion> {
  /** The message or artifact that contains them. */
  readonly source: string;
  /** Whether they continue the same artifact. */
  readonly append: boolean;
  /** The messages, in order. */
  readonly messages: readonly A2uiServerMessageOf<Version>[];
}

/** Result of `event.ext()` for a client, and input of `reduceSurfaces()`. */
export interface A2uiEvent<Version extends A2uiVersion = A2uiVersion> {
  /** All messages of the event, in order. */
  readonly messages: readonly A2uiServerMessageOf<Version>[];
  /** The messages, grouped by source. */
  readonly pieces: readonly A2uiPiece<Version>[];
  /** Invalid messages: the first 100. A client may report them to the agent with `error()`. */
  readonly problems: readonly A2uiProblem[];
  /** Whether the event is a whole task, whose messages the client may have received before. */
  readonly replay: boolean;
}

interface Source {
  readonly source: string;
  readonly append: boolean;
  readonly parts: readonly Part[];
}

export function readEvent<Version extends A2uiVersion>(
  version: Version,
  maxBytes: number,
  event: StreamResponse,
): A2uiEvent<Version> {
  const pieces: A2uiPiece<Version>[] = [];
  const problems: A2uiProblem[] = [];
  for (const { source, append, parts } of sourcesOf(event)) {
    const read = readParts<A2uiServerMessageOf<Version>>(version, serverMessage[version], maxBytes, parts);
    if (problems.length < maxProblems) problems.push(...read.problems);
    if (read.messages.length > 0) pieces.push({ source, append, messages: read.messages });
  }
  return {
    pieces,
    messages: pieces.flatMap(({ messages }) => messages),
    problems: problems.slice(0, maxProblems),
    replay: event.task !== undefined,
  };
}

/** Yields the task's earlier messages, then its artifacts, then its status, because a task does not record their order. */
function sourcesOf({ message, task, statusUpdate, artifactUpdate }: StreamResponse): readonly Source[] {
  if (artifactUpdate !== undefined) {
    const { taskId, artifact, append = false } = artifactUpdate;
    return [{ ...ofArtifact(taskId, artifact), append }];
  }
  if (task === undefined) return ofMessage(message ?? statusUpdate?.status.message);
  const { id, history = [], artifacts = [], status } = task;
  const earlier = history.filter(
    ({ role, messageId }) => role === "ROLE_AGENT" && messageId !== status.message?.messageId,
  );
  return [
    ...earlier.flatMap(ofMessage),
    ...artifacts.map((artifact) => ofArtifact(id, artifact)),
    ...ofMessage(status.message),
  ];
}

function ofMessage(message: Message | undefined): readonly Source[] {
  return message === undefined ? [] : [{ source: `message ${message.messageId}`, append: false, parts: message.parts }];
}

function ofArtifact(taskId: string, { artifactId, parts }: Artifact): Source {
  return { source: `artifact ${taskId} ${artifactId}`, append: false, parts };
}
