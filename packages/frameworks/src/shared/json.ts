import { sha256, toHex } from "@parley/a2a/internal/base/bytes";
import { canonicalJson } from "@parley/a2a/internal/jws/jcs";
import { fromBase64, toBase64, type JsonObject, type JsonValue } from "@parley/a2a/model";

/* Framework values as JSON, for steps and states. */

/** Members that encode values that JSON cannot represent. */
const bytesKey = "$bytes";
const urlKey = "$url";
const dateKey = "$date";
/** Wraps an object that already has such a member, such as MongoDB Extended JSON. */
const plainKey = "$plain";
const marks: ReadonlySet<string> = new Set([bytesKey, urlKey, dateKey, plainKey]);

/** A value as JSON text. Preserves bytes, URLs and dates, and drops functions. `undefined` becomes null. */
export function toJsonText(value: unknown): string {
  return textOf(new Marking(true).of(value));
}

function textOf(json: unknown): string {
  return withoutHalves(JSON.stringify(json ?? null));
}

/** Replaces lone surrogates. JSON can escape them, but UTF-8 cannot encode them. */
function withoutHalves(json: string): string {
  return json.replace(/(?<!\\)((?:\\\\)*)\\ud[89a-f][0-9a-f]{2}/g, "$1\\ufffd");
}

/** Parses a JSON text from another library. */
export function parseJson(json: string): JsonValue {
  return JSON.parse(withoutHalves(json)) as JsonValue;
}

/** A text without lone surrogates. */
export function wellFormed(text: string): string {
  return text.replace(/\p{Surrogate}/gu, "\ufffd");
}

/** A value as plain JSON for other readers: bytes as base64, URLs and dates as text. */
export function toPlainJson(value: unknown): JsonValue {
  return JSON.parse(textOf(new Marking(false).of(value))) as JsonValue;
}

/** A value as JSON. */
export function toJson(value: unknown): JsonValue {
  return JSON.parse(toJsonText(value)) as JsonValue;
}

/** Reverses `toJson()`. */
export function fromJson(json: JsonValue | undefined): unknown {
  if (isList(json)) return json.map(fromJson);
  if (!isObject(json)) return json;
  const entries = Object.entries(json);
  const [[key, text] = []] = entries;
  if (entries.length === 1 && key === plainKey && isObject(text)) return membersOf(text);
  if (entries.length === 1 && typeof text === "string") {
    if (key === bytesKey) return fromBase64(text);
    if (key === urlKey) return new URL(text);
    if (key === dateKey) return new Date(text);
  }
  return membersOf(json);
}

export function isList(json: JsonValue | undefined): json is readonly JsonValue[] {
  return Array.isArray(json);
}

export function isObject(json: JsonValue | undefined): json is JsonObject {
  return typeof json === "object" && json !== null && !Array.isArray(json);
}

function membersOf(json: JsonObject): object {
  return Object.fromEntries(Object.entries(json).map(([name, member]) => [name, fromJson(member)]));
}

const maxDepth = 100;
/** Approximate maximum of characters, to limit memory. Even a small value can expand without bound by repeated references. */
const maxSize = 32 << 20;

/** Converts a value to serializable JSON. */
class Marking {
  /** Whether values that JSON cannot represent are marked, so that they can be restored. */
  readonly #keeps: boolean;
  #left: number;

  constructor(keeps: boolean, size = maxSize) {
    this.#keeps = keeps;
    this.#left = size;
  }

  of(value: unknown, depth = 0): unknown {
    this.#count(typeof value === "string" ? value.length : typeof value === "object" ? 32 : 4);
    if (typeof value === "bigint") return String(value);
    if (typeof value === "number" && !Number.isFinite(value)) return null;
    if (typeof value !== "object" || value === null) return value;
    if (depth > maxDepth) throw new TypeError(`the value nests deeper than ${maxDepth} levels`);
    const [key, text] = specialOf(value) ?? [];
    if (key !== undefined) return this.#keeps ? { [key]: text } : text;
    if (value instanceof Date) return null;
    if (value instanceof Error) return { name: value.name, message: value.message };
    if (Array.isArray(value)) {
      // Counts holes too, because they become text.
      this.#count(value.length);
      return value.map((member) => this.of(member, depth + 1));
    }
    if ("toJSON" in value && typeof value.toJSON === "function")
      return this.of(Reflect.apply(value.toJSON, value, []), depth + 1);
    // Each number becomes a named member.
    if (ArrayBuffer.isView(value)) this.#count(value.byteLength * 4);
    const entries = Object.entries(value);
    const isEscaped = this.#keeps && entries.some(([name]) => marks.has(name));
    const below = depth + (isEscaped ? 2 : 1);
    const members = Object.fromEntries(entries.map(([name, member]) => [name, this.of(member, below)]));
    return isEscaped ? { [plainKey]: members } : members;
  }

  #count(size: number): void {
    this.#left -= size;
    if (this.#left < 0) throw new RangeError("the value is too large");
  }
}

/** Whether the JSON of a value would exceed approximately `size` characters. Does not serialize, because serializers take many times the memory. */
export function isLarger(value: unknown, size: number): boolean {
  try {
    new Marking(false, size).of(value);
    return false;
  } catch (error) {
    return error instanceof RangeError;
  }
}

function specialOf(value: object): readonly [key: string, text: string] | undefined {
  if (value instanceof Uint8Array || value instanceof ArrayBuffer) return [bytesKey, toBase64(value)];
  if (value instanceof URL) return [urlKey, value.href];
  return value instanceof Date && !Number.isNaN(value.getTime()) ? [dateKey, value.toISOString()] : undefined;
}

/** SHA-256 of canonical JSON (RFC 8785), in hexadecimal. */
export async function digestOf(json: JsonValue): Promise<string> {
  return toHex(await sha256(canonicalJson(json)));
}
