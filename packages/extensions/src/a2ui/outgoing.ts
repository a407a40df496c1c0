import type { Logger } from "@parley/a2a/internal/base/index";
import type { JsonObject, Part } from "@parley/a2a/internal/model/index";
import type { AppendedEvent } from "@parley/a2a/internal/protocol/index";
import type { A2uiProblem } from "./messages.ts";
import { isPartOf, readParts } from "./parts.ts";
import { serverMessage } from "./schemas.ts";
import type { A2uiVersion } from "./versions.ts";

/* What an agent says, on its way out. An agent may pass on what a model has made. */

/** Where the operator reads what was left out. */
export interface Told {
  readonly logger: Logger;
  readonly uri: string;
  readonly taskId: string;
}

/** Longest path in a line of the log, in characters: a stranger may give members names of a megabyte. */
const longestPath = 200;

/** Logs what was left out. A stranger may send any number of wrong messages: the first ones are enough. */
export function report({ logger, ...facts }: Told, text: string, problems: readonly A2uiProblem[]): void {
  for (const { path, message } of problems.slice(0, 5)) {
    logger.warn(text, { ...facts, path: path.slice(0, longestPath), problem: message });
  }
}

/** An event without messages that are wrong. */
export interface RightEvent {
  readonly event: AppendedEvent;
  /** What was left out. */
  readonly problems: readonly A2uiProblem[];
}

/** The event without messages that are wrong. What came from another agent is as it came: clients check it anyway. */
export function onlyRight(version: A2uiVersion, maxBytes: number, event: AppendedEvent): RightEvent {
  if (event.kind === "delegated") return { event, problems: [] };
  const content = event.kind === "artifact" ? event.artifact : event.message;
  const read = content?.parts.map((part) => rightPart(version, maxBytes, part)) ?? [];
  const problems = read.flatMap((one) => one.problems);
  if (problems.length === 0) return { event, problems };
  const right = { ...content, parts: read.map(({ part }) => part) };
  return {
    event: { ...event, [event.kind === "artifact" ? "artifact" : "message"]: right },
    problems,
  };
}

/** A part in which nothing is right stays, with an empty list: an artifact has at least one part. */
function rightPart(version: A2uiVersion, maxBytes: number, part: Part) {
  if (!isPartOf(version, part)) return { part, problems: [] };
  const { messages, problems } = readParts<JsonObject>(version, serverMessage[version], maxBytes, [part]);
  return { part: problems.length === 0 ? part : ({ ...part, data: messages } as Part), problems };
}
