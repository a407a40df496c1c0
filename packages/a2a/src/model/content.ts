import type { Bytes } from "../base/index.ts";
import { fromBase64 } from "./build.ts";
import type { Artifact, DataPart, Message, Part, RawPart, TextPart, UrlPart } from "./types.ts";

/** What is in a part: it is told by the one content member that it has (A2A 1.0 §4.1.6). */

export function isTextPart(part: Part): part is TextPart {
  return part.text !== undefined;
}

export function isRawPart(part: Part): part is RawPart {
  return part.raw !== undefined;
}

export function isUrlPart(part: Part): part is UrlPart {
  return part.url !== undefined;
}

/** A file, wherever its bytes are. */
export function isFilePart(part: Part): part is RawPart | UrlPart {
  return isRawPart(part) || isUrlPart(part);
}

export function isDataPart(part: Part): part is DataPart {
  return part.data !== undefined;
}

/**
 * The text parts together: of a message they are paragraphs, joined by line breaks; of an artifact they are the chunks of
 * one text as it was streamed, joined by nothing.
 */
export function textOf(from: Pick<Message, "parts" | "messageId"> | Artifact): string {
  const [first] = from.parts;
  if (from.parts.length === 1 && first?.text !== undefined) return first.text;
  const texts = from.parts.filter(isTextPart).map((part) => part.text);
  return texts.join("artifactId" in from ? "" : "\n");
}

export function bytesOf(part: RawPart): Bytes {
  return fromBase64(part.raw);
}
