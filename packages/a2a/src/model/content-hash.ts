import { ByteHash } from "../base/bytes.ts";
import { fromBase64 } from "./content.ts";
import type { JsonObject, JsonValue } from "./json.ts";
import type { Message } from "./types.ts";

/** Files whose bytes are not in the message, by the URL of their part. */
type FilesByUrl = ReadonlyMap<string, { readonly hash: string; readonly size: number }>;

/** Base64 up to this length is hashed as text. A multiple of four. */
const longText = 64 << 10;
/** Characters of longer base64 that are decoded at a time. A multiple of four. */
const step = 256 << 10;

/**
 * A hash that distinguishes a retry of a message from other content with the same id. It is the same for every binding and
 * version: empty lists of a message count as absent, because protobuf does not carry them.
 *
 * @param files - Files that were stored while the message was read. The hash is then the same as for a message that contains
 * their bytes. Absent: messages never have such files, and the hash differs.
 */
export function contentHash(message: Message, files?: FilesByUrl): string {
  const lanes = new Lanes(files);
  lanes.addObject(message as unknown as JsonObject, true);
  return lanes.digest();
}

/**
 * A hash of a value, 16 hexadecimal digits, independent of the order of members. Fast and not cryptographic, because it is compared
 * with an earlier value of the same owner, so a forged collision harms only its author.
 */
export function jsonHash(value: JsonValue): string {
  const lanes = new Lanes();
  lanes.add(value);
  return lanes.digest();
}

/** Two hashes of 32 bits side by side. */
class Lanes {
  #a = 0x9e3779b1;
  #b = 0x85ebca77;
  readonly #files: FilesByUrl | undefined;

  constructor(files?: FilesByUrl) {
    this.#files = files;
  }

  add(value: JsonValue): void {
    if (typeof value === "string") this.#addText(value, 0);
    else if (typeof value !== "object" || value === null) this.#addText(String(value), 1);
    else if (isList(value)) {
      this.#start(2, value.length);
      for (const item of value) this.add(item);
    } else this.addObject(value, false);
  }

  /** Each member is hashed from the same start, and the hashes are added, so that the order of names does not matter. */
  addObject(object: { readonly [name: string]: JsonValue | undefined }, withoutEmptyLists: boolean): void {
    const [a, b] = [this.#a, this.#b];
    let [count, sumA, sumB] = [0, 0, 0];
    for (const name in object) {
      const value = object[name];
      if (value === undefined || (withoutEmptyLists && Array.isArray(value) && value.length === 0)) continue;
      this.#a = a;
      this.#b = b;
      if (this.#files === undefined || typeof value !== "string" || !this.#addFile(name, value, this.#files)) {
        this.#addText(name, 4);
        this.add(value);
      }
      this.#mix(5);
      sumA = (sumA + this.#a) | 0;
      sumB = (sumB + this.#b) | 0;
      count += 1;
    }
    this.#a = a ^ sumA;
    this.#b = b ^ sumB;
    this.#start(3, count);
  }

  /** Adds a long file by the hash of its bytes, which is also known for a file outside of the message. Returns `false` for other values. */
  #addFile(name: string, value: string, files: FilesByUrl): boolean {
    const file =
      name === "url" ? files.get(value) : name === "raw" && value.length > longText ? hashOfBase64(value) : undefined;
    if (file === undefined) return false;
    this.#addText("raw", 4);
    this.#addText(`${file.size}.${file.hash}`, 6);
    return true;
  }

  /** Kind and length go first, so that two values with the same characters differ. */
  #start(kind: number, length: number): void {
    this.#mix(kind);
    this.#mix(length);
  }

  #addText(text: string, kind: number): void {
    this.#start(kind, text.length);
    let a = this.#a;
    let b = this.#b;
    for (let i = 0; i < text.length; i += 1) {
      const unit = text.charCodeAt(i);
      a = Math.imul(a ^ unit, 0x9e3779b1);
      b = Math.imul(b ^ unit, 0x5f356495);
      a ^= a >>> 15;
      b ^= b >>> 13;
    }
    this.#a = a;
    this.#b = b;
  }

  #mix(value: number): void {
    this.#a = Math.imul(this.#a ^ value, 0x85ebca77);
    this.#b = Math.imul(this.#b ^ value, 0xc2b2ae3d);
    this.#a ^= this.#a >>> 16;
    this.#b ^= this.#b >>> 15;
  }

  digest(): string {
    this.#mix(0);
    this.#mix(1);
    return hex(this.#a ^ Math.imul(this.#b, 0x27d4eb2f), this.#b ^ (this.#a >>> 7));
  }
}

function hashOfBase64(raw: string): { readonly hash: string; readonly size: number } {
  const hash = new ByteHash();
  for (let at = 0; at < raw.length; at += step) {
    const piece = raw.slice(at, at + step);
    // A member of metadata may have the same name, and any value.
    if (piece.length % 4 !== 0 || !base64.test(piece)) return { hash: jsonHash(raw), size: -1 };
    hash.add(fromBase64(piece));
  }
  return { hash: hash.digest(), size: hash.size };
}

const base64 = /^[A-Za-z\d+/]*={0,2}$/;

/** `toString(16)` takes sixteen times as long on Node 20 and 24: half a microsecond per message. */
function hex(a: number, b: number): string {
  return String.fromCharCode(
    digit(a >>> 28),
    digit(a >>> 24),
    digit(a >>> 20),
    digit(a >>> 16),
    digit(a >>> 12),
    digit(a >>> 8),
    digit(a >>> 4),
    digit(a),
    digit(b >>> 28),
    digit(b >>> 24),
    digit(b >>> 20),
    digit(b >>> 16),
    digit(b >>> 12),
    digit(b >>> 8),
    digit(b >>> 4),
    digit(b),
  );
}

/** The character code of the lowest four bits. */
function digit(bits: number): number {
  const value = bits & 15;
  return value < 10 ? 0x30 + value : 0x57 + value;
}

/** `Array.isArray` does not narrow readonly arrays. */
function isList(value: JsonValue): value is readonly JsonValue[] {
  return Array.isArray(value);
}
