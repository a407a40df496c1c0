import { randomIds, type Bytes } from "../base/index.ts";
import type {
  Artifact,
  DataPart,
  JsonObject,
  JsonValue,
  Message,
  Part,
  RawPart,
  Role,
  TextPart,
  UrlPart,
} from "./types.ts";

/** Builders of messages and their parts. All they make is plain data, so it can be written by hand just as well. */

export interface PartOptions {
  readonly mediaType?: string;
  readonly filename?: string;
  readonly metadata?: JsonObject;
}

export function text(value: string, options: PartOptions = {}): TextPart {
  return { text: value, ...options };
}

/** Any JSON value, `null` included. */
export function data(value: JsonValue, options: PartOptions = {}): DataPart {
  return { data: value, ...options };
}

/** Where the bytes of a file are: here, here as base64, or elsewhere. */
export type FileSource = Uint8Array | ArrayBuffer | { readonly base64: string } | { readonly url: string } | URL;

/**
 * A file, with its bytes in the message or with an address to get them from.
 *
 * @example file(bytes, { filename: "weather.csv", mediaType: "text/csv" })
 * @example file(new URL("https://example.com/weather.csv"))
 */
export function file(source: URL | { readonly url: string }, options?: PartOptions): UrlPart;
export function file(source: Uint8Array | ArrayBuffer | { readonly base64: string }, options?: PartOptions): RawPart;
export function file(source: FileSource, options?: PartOptions): RawPart | UrlPart;
export function file(source: FileSource, options: PartOptions = {}): RawPart | UrlPart {
  if (source instanceof URL) return { url: source.href, ...options };
  if ("url" in source) return { url: source.url, ...options };
  return { raw: "base64" in source ? source.base64 : toBase64(source), ...options };
}

/** Text, one part, or parts. */
export type Content = string | Part | readonly Part[];

export function partsOf(content: Content): readonly Part[] {
  if (typeof content === "string") return [text(content)];
  return Array.isArray(content) ? (content as readonly Part[]) : [content as Part];
}

export interface MessageOptions extends Partial<Omit<Message, "parts">> {
  /** Default `ROLE_USER`. */
  readonly role?: Role;
  /** Default: a random one. Keep it when the message is sent again, so that it is known for the same (D8). */
  readonly messageId?: string;
}

export function message(content: Content, options: MessageOptions = {}): Message {
  const { messageId = randomIds.next(), role = "ROLE_USER", ...rest } = options;
  return { messageId, role, parts: partsOf(content), ...rest };
}

export function artifact(content: Content, options: Partial<Omit<Artifact, "parts">> = {}): Artifact {
  const { artifactId = randomIds.next(), ...rest } = options;
  return { artifactId, ...rest, parts: partsOf(content) };
}

/** Standard base64 with padding. */
export function toBase64(bytes: Uint8Array | ArrayBuffer): string {
  const view = bytes instanceof Uint8Array ? bytes : new Uint8Array(bytes);
  let binary = "";
  // In pieces, since each byte is an argument of the call.
  for (let i = 0; i < view.length; i += 8192) binary += String.fromCharCode(...view.subarray(i, i + 8192));
  return btoa(binary);
}

export function fromBase64(base64: string): Bytes {
  const binary = atob(base64);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < binary.length; i += 1) bytes[i] = binary.charCodeAt(i);
  return bytes;
}
