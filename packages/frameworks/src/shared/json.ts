import { sha256, toHex } from "@parley/a2a/internal/base/bytes";
import { canonicalJson } from "@parley/a2a/internal/jws/jcs";
import type { JsonValue } from "@parley/a2a/model";

/* Values of frameworks as JSON, for steps and states. */

/** Members that stand for what JSON cannot hold. */
const bytesKey = "$bytes";
const urlKey = "$url";
const dateKey = "$date";

/** A value as JSON text: bytes, URLs and dates are kept, functions are not. `undefined` becomes null. */
export function toJsonText(value: unknown): string {
  const text = JSON.stringify(marked(value, 0) ?? null);
  // Half of a surrogate pair, which only an escape can write: UTF-8 has no form of it.
  return text.replace(/(?<!\\)((?:\\\\)*)\\ud[89a-f][0-9a-f]{2}/g, "$1\\ufffd");
}

/** A value as JSON. */
export function toJson(value: unknown): JsonValue {
  return JSON.parse(toJsonText(value)) as JsonValue;
}

/** The value that `toJson()` was given. */
export function fromJson(json: JsonValue | undefined): unknown {
  if (typeof json !== "object" || json === null) return json;
  if (Array.isArray(json)) return json.map(fromJson);
  const entries = Object.entries(json);
  const [[key, text] = []] = entries;
  if (entries.length === 1 && typeof text === "string") {
    if (key === bytesKey) return Uint8Array.from(atob(text), (char) => char.charCodeAt(0));
    if (key === urlKey) return new URL(text);
    if (key === dateKey) return new Date(text);
  }
  return Object.fromEntries(entries.map(([name, member]) => [name, fromJson(member)]));
}

const maxDepth = 100;

function marked(value: unknown, depth: number): unknown {
  if (typeof value === "bigint") return String(value);
  if (typeof value === "number" && !Number.isFinite(value)) return null;
  if (typeof value !== "object" || value === null) return value;
  if (depth > maxDepth) throw new TypeError(`the value nests deeper than ${maxDepth} levels`);
  if (value instanceof Uint8Array) return { [bytesKey]: base64Of(value) };
  if (value instanceof ArrayBuffer) return { [bytesKey]: base64Of(new Uint8Array(value)) };
  if (value instanceof URL) return { [urlKey]: value.href };
  if (value instanceof Date) return Number.isNaN(value.getTime()) ? null : { [dateKey]: value.toISOString() };
  if (value instanceof Error) return { name: value.name, message: value.message };
  if (Array.isArray(value)) return value.map((member) => marked(member, depth + 1));
  const plain: unknown =
    "toJSON" in value && typeof value.toJSON === "function" ? Reflect.apply(value.toJSON, value, []) : value;
  if (typeof plain !== "object" || plain === null) return plain;
  return Object.fromEntries(Object.entries(plain).map(([name, member]) => [name, marked(member, depth + 1)]));
}

export function base64Of(bytes: Uint8Array): string {
  let text = "";
  for (let at = 0; at < bytes.length; at += 0x8000) text += String.fromCharCode(...bytes.subarray(at, at + 0x8000));
  return btoa(text);
}

/** SHA-256 over canonical JSON (RFC 8785), in hexadecimal. */
export async function digestOf(value: unknown): Promise<string> {
  return toHex(await sha256(canonicalJson(toJson(value))));
}
