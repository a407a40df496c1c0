import type { Bytes } from "../base/index.ts";
import { fromBase64 } from "./build.ts";
import type { Artifact, DataPart, Message, Part, RawPart, TextPart, UrlPart } from "./types.ts";

/** What a part holds. Its one content member tells (A2A 1.0 §4.1.6). */

/** Whether a part is text. */
export function isTextPart(part: Part): part is TextPart {
  return part.text !== undefined;
}

/** Whether a part holds the bytes of a file. */
export function isRawPart(part: Part): part is RawPart {
  return part.raw !== undefined;
}

/** Whether a part is the address of a file. */
export function isUrlPart(part: Part): part is UrlPart {
  return part.url !== undefined;
}

/** Whether a part is a file, in the part itself or at an address. */
export function isFilePart(part: Part): part is RawPart | UrlPart {
  return isRawPart(part) || isUrlPart(part);
}

/** Whether a part is a JSON value. */
export function isDataPart(part: Part): part is DataPart {
  return part.data !== undefined;
}

/**
 * The text parts of a message or an artifact as one text. Parts of a message are paragraphs and joined by line breaks.
 * Parts of an artifact are chunks of one text and joined by nothing. Other parts are left out.
 *
 * @example
 * ```ts
 * textOf({ messageId: "1", parts: [{ text: "Hello" }, { text: "world" }] }); // "Hello\nworld"
 * ```
 */
export function textOf(from: Pick<Message, "parts" | "messageId"> | Artifact): string {
  const [first] = from.parts;
  if (from.parts.length === 1 && first?.text !== undefined) return first.text;
  const texts = from.parts.filter(isTextPart).map((part) => part.text);
  return texts.join("artifactId" in from ? "" : "\n");
}

/**
 * The bytes of a file that is in the part itself.
 *
 * @throws `DOMException` `InvalidCharacterError` where `raw` is not base64. Parts that passed a schema are.
 */
export function bytesOf(part: RawPart): Bytes {
  return fromBase64(part.raw);
}
