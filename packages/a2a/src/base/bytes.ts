/** Bytes in an `ArrayBuffer`, as `fetch` requires. Before TypeScript 5.7, `Uint8Array` has no parameter for its buffer. */
export type Bytes = Uint8Array & {
  /** The buffer. */
  readonly buffer: ArrayBuffer;
};

/*
 * Strict base64 for texts that are compared or revoked as text, such as tokens and signatures (RFC 4648 §3.5, §4, §5). Any bytes have exactly
 * one spelling; other decoders ignore padding and unused bits.
 */

const standard = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
const url = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

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

/** Decodes base64url without padding. `undefined` if the text is not canonical. */
export function fromBase64Url(text: string): Bytes | undefined {
  return isBase64Url(text) ? bytesOf(text.replaceAll("-", "+").replaceAll("_", "/")) : undefined;
}

/** Encodes bytes as base64url without padding. For short values only. */
export function toBase64Url(bytes: Uint8Array | ArrayBuffer): string {
  const view = bytes instanceof Uint8Array ? bytes : new Uint8Array(bytes);
  return btoa(Array.from(view, (byte) => String.fromCharCode(byte)).join(""))
    .replaceAll("+", "-")
    .replaceAll("/", "_")
    .replaceAll("=", "");
}

/** Decodes standard base64 with padding. `undefined` if the text is not canonical. */
export function fromCanonicalBase64(text: string): Bytes | undefined {
  const [, body = "", padding = ""] = /^([A-Za-z\d+/]*)(={0,2})$/.exec(text) ?? [text];
  const isWhole = text.length % 4 === 0 && body.length + padding.length === text.length;
  return isWhole && endsCanonically(body, standard) ? bytesOf(body) : undefined;
}

/** Whether a text has the form of a JWS in compact serialization: three parts in canonical base64url (RFC 7515 §7.1). The last part of an unsigned JWS is empty. */
export function isCompactJws(text: string): boolean {
  const parts = text.split(".");
  return parts.length === 3 && parts.every(isBase64Url);
}

function bytesOf(base64: string): Bytes {
  return Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
}

/**
 * A hash of bytes that arrive in pieces, as 16 hexadecimal digits. Not cryptographic, because it is only compared with the
 * hash that an earlier attempt of the same turn has stored. WebCrypto can only hash whole values.
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

/** SHA-256 of a text in UTF-8, by WebCrypto. */
export async function sha256(text: string): Promise<Bytes> {
  return new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text)));
}

/** Bytes in hexadecimal. */
export function toHex(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

/* The size of text in UTF-8, and text that arrives in pieces. */

const encoder = /* @__PURE__ */ new TextEncoder();

/** A buffer for counting the bytes of texts. A new buffer for each text takes seven times as long (docs/decisions/hot-path.md). */
const scratch = /* @__PURE__ */ new Uint8Array(1 << 14);

/** The bytes of a text in UTF-8. A lone surrogate counts as the three bytes of its replacement character. */
export function utf8Length(text: string): number {
  let { read, written: bytes } = encoder.encodeInto(text, scratch);
  while (read < text.length) {
    const step = encoder.encodeInto(text.slice(read), scratch);
    read += step.read;
    bytes += step.written;
  }
  return bytes;
}

/** Joins pieces of text, a thousand at a time: `+=` keeps 32 bytes for each piece until the text is read. */
export class Pieces {
  #text = "";
  #pieces: string[] = [];

  push(piece: string): void {
    if (this.#pieces.push(piece) > 999) this.#text = this.take();
  }

  /** Returns the whole text, and starts a new one. */
  take(): string {
    const text = this.#text + this.#pieces.join("");
    this.#text = "";
    this.#pieces = [];
    return text;
  }
}

/**
 * Decodes UTF-8 in pieces that may end inside a character. Drops a byte order mark; invalid bytes become U+FFFD. `TextDecoder` with
 * `stream: true` takes seven times as long in Node, and twice the memory.
 */
export class Utf8Pieces {
  readonly #decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  #rest: Uint8Array = new Uint8Array(0);
  #begun = false;

  /** The characters that this piece completes. */
  push(piece: Uint8Array): string {
    const bytes = this.#rest.length === 0 ? piece : joined(this.#rest, piece);
    const end = bytes.length - incompleteBytes(bytes);
    this.#rest = bytes.slice(end);
    const text = this.#decoder.decode(end === bytes.length ? bytes : bytes.subarray(0, end));
    if (this.#begun) return text;
    this.#begun = text !== "";
    return text.replace(/^\uFEFF/, "");
  }
}

/** How many bytes at the end belong to a character that is not complete. */
function incompleteBytes(bytes: Uint8Array): number {
  for (let back = 1; back <= 3; back++) {
    const byte = bytes.at(-back) ?? 0;
    if (byte < 0x80) return 0;
    // The first byte of a character determines the number of its bytes.
    if (byte >= 0xc0) return back < (byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2) ? back : 0;
  }
  return 0;
}

function joined(first: Uint8Array, second: Uint8Array): Uint8Array {
  const bytes = new Uint8Array(first.length + second.length);
  bytes.set(first);
  bytes.set(second, first.length);
  return bytes;
}
