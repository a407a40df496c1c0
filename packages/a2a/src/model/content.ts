import { randomIds, type Bytes } from "../base/index.ts";
import { jsonAdvice, notJson } from "../base/json.ts";
import type { JsonLike, JsonObject, JsonObjectLike, JsonValue } from "./json.ts";
import type { Artifact, DataPart, Message, Part, RawPart, Role, TextPart, UrlPart } from "./types.ts";

/** Builders and readers of content. Builders return plain data, which you can also write by hand. */

/** Fields of every part, in addition to its content. */
export interface PartOptions<Metadata extends JsonObjectLike<Metadata> = JsonObject> {
  /** Media type of the content, such as `text/markdown`. */
  readonly mediaType?: string;
  /** Name of the file. */
  readonly filename?: string;
  /** Metadata of the part. */
  readonly metadata?: Metadata;
}

/**
 * Makes a text part.
 *
 * @example
 * ```ts
 * text("# Report", { mediaType: "text/markdown" });
 * ```
 */
export function text<Metadata extends JsonObjectLike<Metadata> = JsonObject>(
  value: string,
  options: PartOptions<Metadata> = {},
): TextPart {
  return { text: value, ...asJson(options) };
}

/**
 * Makes a part of any JSON value, `null` included. Its type may be an interface (`JsonLike`).
 *
 * @throws TypeError with the path of a value that is not JSON, such as a `Date`.
 *
 * @example
 * ```ts
 * data({ city: "Basel", degrees: 21 });
 * ```
 */
export function data<T extends JsonLike<T>, Metadata extends JsonObjectLike<Metadata> = JsonObject>(
  value: T,
  options: PartOptions<Metadata> = {},
): DataPart {
  checkJson(value, "data");
  return { data: value as JsonValue, ...asJson(options) };
}

/** @throws TypeError */
function checkJson(value: unknown, name: string): void {
  const fault = notJson(value);
  if (fault !== undefined) throw new TypeError(`${name}${fault}, which is not JSON; ${jsonAdvice("use")}`);
}

/** Returns the same object, with the type that a reader gets. */
function asJson<Options extends { readonly metadata?: unknown }>(
  options: Options,
): Omit<Options, "metadata"> & { readonly metadata?: JsonObject } {
  if (options.metadata !== undefined) checkJson(options.metadata, "metadata");
  return options as Options & { readonly metadata?: JsonObject };
}

/** The bytes of a file, as binary or as base64 text, or the URL of the file. */
export type FileSource =
  | Uint8Array
  | ArrayBuffer
  | {
      /** The bytes as base64 text. */
      readonly base64: string;
    }
  | {
      /** The address of the file. */
      readonly url: string;
    }
  | URL;

/**
 * Makes a part of a file: with its bytes, or with its URL.
 *
 * @example
 * ```ts
 * const bytes = new TextEncoder().encode("day,degrees\n1,21\n");
 * file(bytes, { filename: "weather.csv", mediaType: "text/csv" });
 * file(new URL("https://example.com/weather.csv"));
 * ```
 */
export function file<Metadata extends JsonObjectLike<Metadata> = JsonObject>(
  source: URL | { readonly url: string },
  options?: PartOptions<Metadata>,
): UrlPart;
export function file<Metadata extends JsonObjectLike<Metadata> = JsonObject>(
  source: Uint8Array | ArrayBuffer | { readonly base64: string },
  options?: PartOptions<Metadata>,
): RawPart;
export function file<Metadata extends JsonObjectLike<Metadata> = JsonObject>(
  source: FileSource,
  options?: PartOptions<Metadata>,
): RawPart | UrlPart;
export function file(source: FileSource, options: PartOptions = {}): RawPart | UrlPart {
  const rest = asJson(options);
  if (source instanceof URL) return { url: source.href, ...rest };
  if ("url" in source) return { url: source.url, ...rest };
  return { raw: "base64" in source ? source.base64 : toBase64(source), ...rest };
}

/** The content of a message: a text, one part, or several parts. */
export type Content = string | Part | readonly Part[];

/** The parts of a content: a text becomes one text part. */
export function partsOf(content: Content): readonly Part[] {
  if (typeof content === "string") return [text(content)];
  return isPartList(content) ? content : [content];
}

/** Whether a value of this type is a list of parts. */
export function isPartList(value: unknown): value is readonly Part[] {
  return Array.isArray(value);
}

/** Fields of a message, in addition to its content. */
export interface MessageOptions<Metadata extends JsonObjectLike<Metadata> = JsonObject> extends Partial<
  Omit<Message, "parts" | "metadata">
> {
  /** Anything else about the message. */
  readonly metadata?: Metadata;
  /** The sender's role. Default `ROLE_USER`. */
  readonly role?: Role;
  /** Identifier of the message. Default: a random one. To retry a send, use the same id: the server then recognizes the retry. */
  readonly messageId?: string;
}

/**
 * Makes a message.
 *
 * @example
 * ```ts
 * message("What is the weather?", { contextId: "conversation-1" });
 * ```
 */
export function message<Metadata extends JsonObjectLike<Metadata> = JsonObject>(
  content: Content,
  options: MessageOptions<Metadata> = {},
): Message {
  const { messageId = randomIds.next(), role = "ROLE_USER", ...rest } = asJson(options);
  return { messageId, role, parts: partsOf(content), ...rest };
}

/** Makes an artifact. Its `artifactId` is random unless the options have one. */
export function artifact<Metadata extends JsonObjectLike<Metadata> = JsonObject>(
  content: Content,
  options: Partial<Omit<Artifact, "parts" | "metadata">> & { readonly metadata?: Metadata } = {},
): Artifact {
  const { artifactId = randomIds.next(), ...rest } = asJson(options);
  return { artifactId, ...rest, parts: partsOf(content) };
}

/* The single content member of a part determines its type (A2A 1.0 §4.1.6). */

/** Whether a part is text. */
export function isTextPart(part: Part): part is TextPart {
  return part.text !== undefined;
}

/** Whether a part holds the bytes of a file. */
export function isRawPart(part: Part): part is RawPart {
  return part.raw !== undefined;
}

/** Whether a part has the URL of a file. */
export function isUrlPart(part: Part): part is UrlPart {
  return part.url !== undefined;
}

/** Whether a part is a file, as bytes or as a URL. */
export function isFilePart(part: Part): part is RawPart | UrlPart {
  return isRawPart(part) || isUrlPart(part);
}

/** Whether a part is a JSON value. */
export function isDataPart(part: Part): part is DataPart {
  return part.data !== undefined;
}

/**
 * The text parts of a message or an artifact as one text. Parts of a message are paragraphs and joined by line breaks. Parts
 * of an artifact are joined without a separator, because they are chunks of one text. Other parts are omitted.
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

/** The bytes in the part. Throws `DOMException` `InvalidCharacterError` unless `raw` is base64, which schemas ensure. */
export function bytesOf(part: RawPart): Bytes {
  return fromBase64(part.raw);
}

/** Encodes bytes as standard base64 with padding. */
export function toBase64(bytes: Uint8Array | ArrayBuffer): string {
  const view = bytes instanceof Uint8Array ? bytes : new Uint8Array(bytes);
  let base64 = "";
  // In pieces, because each byte is an argument of the call, and engines limit their number. A multiple of three, so that the pieces
  // have no padding. Not by spreading, which takes five times as long (docs/decisions/files.md).
  for (let i = 0; i < view.length; i += 8190) {
    base64 += btoa(String.fromCharCode.apply(null, view.subarray(i, i + 8190) as unknown as number[]));
  }
  return base64;
}

/** Decodes standard base64. Throws `DOMException` `InvalidCharacterError`. */
export function fromBase64(base64: string): Bytes {
  const binary = atob(base64);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i += 1) bytes[i] = binary.charCodeAt(i);
  return bytes;
}

/* Parts of an artifact that grows. */

/** Whether a part has only its text and a media type, so that adjacent text can be merged into it. */
function isPlainText({ text, mediaType: _, ...rest }: Part): boolean {
  return text !== undefined && Object.values(rest).every((value) => value === undefined);
}

/** Adds a part. With `mergeTextParts`, plain text is appended to preceding plain text of the same media type. */
export function addPart(parts: Part[], part: Part, mergeTextParts: boolean): void {
  const last = mergeTextParts && parts.at(-1);
  const merges = last && last.mediaType === part.mediaType && isPlainText(last) && isPlainText(part);
  if (merges) parts[parts.length - 1] = Object.freeze({ ...last, text: `${last.text}${part.text}` } as Part);
  else parts.push(part);
}

/** The amount of content: the characters of texts, and 1 for each other part. It does not depend on how texts are divided into parts. */
export function contentLength(parts: readonly Part[]): number {
  return parts.reduce((sum, { text }) => sum + (text?.length ?? 1), 0);
}

/** The content after the first `length`, as `contentLength` counts it. Cuts a text if it begins inside that text. */
export function contentAfter(parts: readonly Part[], length: number): readonly Part[] {
  let left = length;
  const at = parts.findIndex((part) => {
    const own = contentLength([part]);
    if (left === 0 || left < own) return true;
    left -= own;
    return false;
  });
  const first = parts[at];
  if (first === undefined) return [];
  const rest = parts.slice(at + 1);
  return first.text === undefined ? [first, ...rest] : [{ ...first, text: first.text.slice(left) }, ...rest];
}
