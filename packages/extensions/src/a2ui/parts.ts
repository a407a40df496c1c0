import { utf8Length } from "@parley/a2a/internal/base/utf8";
import type { JsonObject, JsonValue, Part } from "@parley/a2a/internal/model/index";
import { isJsonObject, type Check, type Fault } from "./check.ts";
import type { A2uiProblem } from "./messages.ts";
import { mediaTypes, versions, type A2uiVersion } from "./versions.ts";

/* Data parts of A2UI: from messages to parts, and from the parts of a stranger to messages. */

/** Deepest data in a part. */
const maxDepth = 64;

/** Most problems that are kept of one event: a stranger may send a million wrong messages. */
export const maxProblems = 100;

const kinds08 = ["beginRendering", "surfaceUpdate", "dataModelUpdate", "userAction"];

/** The media type of a part, without its parameters. A2UI has it in the metadata; A2A 1.0 has a member for it too. */
function mediaTypeOf({ mediaType, metadata }: Part): string {
  const said = metadata?.["mimeType"] ?? mediaType;
  return typeof said === "string" ? (said.split(";", 1)[0] ?? "").trim().toLowerCase() : "";
}

/** Whether a part has messages of this version. A part that no version can be told of is everybody's. */
export function isPartOf(version: A2uiVersion, part: Part): boolean {
  if (part.data === undefined || !mediaTypes.includes(mediaTypeOf(part))) return false;
  const said = saidVersions(part.data);
  return said.size === 0 || versionsOf(version).some((name) => said.has(name));
}

/** 0.8 has messages without a version. */
function versionsOf(version: A2uiVersion): readonly string[] {
  const { versions: names } = versions[version];
  return names.length === 0 ? [""] : names;
}

const everyVersion = new Set(Object.values(versions).flatMap((facts) => facts.versions));

function saidVersions(data: unknown): ReadonlySet<string> {
  const said = new Set<string>();
  for (const message of Array.isArray(data) ? (data as readonly unknown[]) : [data]) {
    if (!isJsonObject(message)) continue;
    const { version } = message;
    if (typeof version === "string") {
      if (everyVersion.has(version)) said.add(version);
    } else if (kinds08.some((kind) => Object.hasOwn(message, kind))) said.add("");
  }
  return said;
}

/** What a part may be before its messages are looked at: a list of messages (in 0.8 also a single one), and not too large. */
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

/** How many bytes a value is as JSON. */
function bytesOf(value: unknown): number {
  return utf8Length(JSON.stringify(value) ?? "");
}

function isDeeper(value: unknown, levels: number): boolean {
  if (typeof value !== "object" || value === null) return false;
  return levels === 0 || Object.values(value).some((member) => isDeeper(member, levels - 1));
}

/** Messages of a part, or of several. */
export interface ReadMessages<Message> {
  /** Those that are right, in order. */
  readonly messages: readonly Message[];
  /** What is wrong with the others: the first 100. */
  readonly problems: readonly A2uiProblem[];
}

/** The messages of a list, each by itself: a wrong one is a problem, and those after it count (A2UI, "Processing Rules"). */
export function readMessages<Message>(check: Check, data: unknown): ReadMessages<Message> {
  const messages: Message[] = [];
  const problems: A2uiProblem[] = [];
  for (const [index, message] of (Array.isArray(data) ? (data as readonly unknown[]) : [data]).entries()) {
    const found = check(message);
    if (found === undefined) messages.push(message as Message);
    else if (problems.length < maxProblems)
      problems.push({ index, path: found.path, message: found.message, ...surfaceOf(message) });
  }
  return { messages, problems };
}

/** The surface of a message, which may be wrong in any way. */
export function surfaceOf(message: unknown): { readonly surfaceId?: string } {
  for (const content of isJsonObject(message) ? Object.values(message) : []) {
    const surfaceId = isJsonObject(content) ? content["surfaceId"] : undefined;
    if (typeof surfaceId === "string") return { surfaceId };
  }
  return {};
}

/** The messages of all parts that are of a version. */
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
 * Parts of messages: one part with all of them, and in 0.8 a part for each.
 *
 * @throws TypeError for a message that is not of the version, and for a part that is too large.
 */
export function writeParts(
  version: A2uiVersion,
  check: Check,
  maxBytes: number,
  messages: readonly object[],
): readonly Part[] {
  const { mediaType, versions: names } = versions[version];
  // What `undefined` stands for is left out, as it is on the wire.
  const plain = JSON.parse(JSON.stringify(messages)) as readonly JsonObject[];
  const lists: readonly JsonValue[] = names.length === 0 ? plain : [plain];
  const envelope = checkEnvelope(version, maxBytes);
  for (const data of lists) {
    const wrong = envelope(data);
    if (wrong !== undefined) throw new TypeError(`A part of A2UI ${wrong.message}`);
  }
  const [problem] = readMessages(check, plain).problems;
  if (problem !== undefined)
    throw new TypeError(
      `Message ${problem.index} is no message of A2UI ${version}: ${problem.path} ${problem.message}`,
    );
  return lists.map((data) => ({ data, mediaType, metadata: { mimeType: mediaType } }));
}
