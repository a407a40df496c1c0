import type { Bytes } from "./index.ts";

/*
 * Base64 of what is compared or revoked as text, such as tokens and signatures (RFC 4648 §3.5, §4, §5). Bytes have exactly one spelling
 * here: other decoders ignore padding and unused bits.
 */

const standard = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const url = `${standard.slice(0, 62)}-_`;

/** The unused bits of the last character, by the length of the text modulo 4. A length of 1 is impossible. */
const unusedBits: readonly (number | undefined)[] = [0, undefined, 15, 3];

/** Whether the unused bits at the end of a text without padding are zero. */
function endsCanonically(text: string, alphabet: string): boolean {
  const bits = unusedBits[text.length % 4];
  return bits === 0 || (bits !== undefined && (alphabet.indexOf(text.at(-1) ?? "") & bits) === 0);
}

/** Whether a text is canonical base64url without padding (RFC 7515 §2). */
export function isBase64Url(text: string): boolean {
  return /^[\w-]*$/.test(text) && endsCanonically(text, url);
}

/** Decodes base64url without padding. `undefined` if the text is anything but the one spelling of its bytes. */
export function fromBase64Url(text: string): Bytes | undefined {
  return isBase64Url(text) ? bytesOf(text.replaceAll("-", "+").replaceAll("_", "/")) : undefined;
}

/** Encodes bytes as base64url without padding. They are few. */
export function toBase64Url(bytes: Uint8Array | ArrayBuffer): string {
  const view = bytes instanceof Uint8Array ? bytes : new Uint8Array(bytes);
  return btoa(Array.from(view, (byte) => String.fromCharCode(byte)).join(""))
    .replaceAll("+", "-")
    .replaceAll("/", "_")
    .replaceAll("=", "");
}

/** Decodes standard base64 with padding. `undefined` if the text is anything but the one spelling of its bytes. */
export function fromCanonicalBase64(text: string): Bytes | undefined {
  const [, body = "", padding = ""] = /^([A-Za-z\d+/]*)(={0,2})$/.exec(text) ?? [text];
  const isWhole = text.length % 4 === 0 && body.length + padding.length === text.length;
  return isWhole && endsCanonically(body, standard) ? bytesOf(body) : undefined;
}

/** Whether a text has the form of a JWS in compact serialization: three parts in canonical base64url (RFC 7515 §7.1). An unsigned one has an empty part. */
export function isCompactJws(text: string): boolean {
  const parts = text.split(".");
  return parts.length === 3 && parts.every(isBase64Url);
}

function bytesOf(base64: string): Bytes {
  return Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
}

/**
 * A hash of bytes in pieces, 16 hexadecimal digits. Not cryptographic: compared with what an earlier attempt of the same turn has stored.
 * WebCrypto hashes whole values only.
 */
export class ByteHash {
  #a = 0x9e3779b1;
  #b = 0x85ebca77;
  size = 0;

  add(bytes: Bytes): void {
    let [a, b] = [this.#a, this.#b];
    for (let at = 0; at < bytes.length; at += 1) {
      const byte = bytes[at] ?? 0;
      a = Math.imul(a ^ byte, 0x01000193);
      b = Math.imul(b ^ byte, 0x5f356495);
      b ^= b >>> 15;
    }
    this.#a = a;
    this.#b = b;
    this.size += bytes.length;
  }

  digest(): string {
    return [this.#a, this.#b].map((lane) => (lane >>> 0).toString(16).padStart(8, "0")).join("");
  }
}
