import type { Bytes } from "../../base/index.ts";

/* Decodes base64 in a JSON string while it arrives. */

const quote = 0x22;
const backslash = 0x5c;
const padding = 0x3d;

/** Flags for characters that only one of the two alphabets contains. */
const standard = 0x40;
const urlSafe = 0x80;
/** Greater than the value of every base64 character. */
const other = 0x100;

const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

/** The value of each byte: six bits, and the flag of its alphabet. */
const values: Uint16Array = /* @__PURE__ */ (() => {
  const table = new Uint16Array(256).fill(other);
  for (let at = 0; at < alphabet.length; at += 1) table[alphabet.charCodeAt(at)] = at;
  table[0x2b] = 62 | standard;
  table[0x2f] = 63 | standard;
  table[0x2d] = 62 | urlSafe;
  table[0x5f] = 63 | urlSafe;
  return table;
})();

/** Decodes base64 of either alphabet, padded or not, with the JSON escapes that some writers use: `\/`, `\u002B`. */
export class JsonBase64 {
  /** The bits of an incomplete group, six per character. */
  #bits = 0;
  #count = 0;
  /** Flags of the alphabets seen so far. */
  #seen = 0;
  #pads = 0;
  /** Characters so far, without padding. */
  #length = 0;
  /** The beginning of an escape. */
  #escape = "";
  /** Whether the string has ended. */
  ended = false;
  /** Whether the string is not base64. */
  invalid = false;

  /** Decodes a piece. Stops after the closing quote. Returns the decoded bytes, and how much of the piece was read. */
  push(piece: Uint8Array, from = 0): { readonly bytes: Bytes; readonly read: number } {
    const out = new Uint8Array(Math.ceil(((piece.length - from + 4) * 3) / 4));
    const table = values;
    let [at, to] = [from, 0];
    while (at < piece.length && !this.ended && !this.invalid) {
      if (this.#count === 0 && this.#escape === "" && this.#pads === 0) {
        const begun = at;
        let seen = 0;
        for (; at + 4 <= piece.length; at += 4) {
          const a = table[piece[at] ?? 0] ?? other;
          const b = table[piece[at + 1] ?? 0] ?? other;
          const c = table[piece[at + 2] ?? 0] ?? other;
          const d = table[piece[at + 3] ?? 0] ?? other;
          const all = a | b | c | d;
          if (all >= other) break;
          seen |= all;
          out[to] = ((a & 63) << 2) | ((b & 63) >> 4);
          out[to + 1] = ((b & 15) << 4) | ((c & 63) >> 2);
          out[to + 2] = ((c & 3) << 6) | (d & 63);
          to += 3;
        }
        this.#seen |= seen;
        this.#length += at - begun;
        if (at >= piece.length) break;
      }
      to = this.#character(piece[at] ?? 0, out, to);
      at += 1;
    }
    if ((this.#seen & standard) !== 0 && (this.#seen & urlSafe) !== 0) this.invalid = true;
    return { bytes: out.subarray(0, to), read: at - from };
  }

  /** The bytes of an incomplete last group. */
  last(): Bytes {
    const padded = this.#pads === 0 || (this.#length + this.#pads) % 4 === 0;
    if (!padded || this.#pads > 2 || this.#length % 4 === 1 || this.#escape !== "") this.invalid = true;
    const bits = this.#bits;
    if (this.#count === 2) return new Uint8Array([bits >> 4]);
    return this.#count === 3 ? new Uint8Array([bits >> 10, (bits >> 2) & 255]) : new Uint8Array(0);
  }

  #character(byte: number, out: Uint8Array, to: number): number {
    if (this.#escape !== "") return this.#escaped(byte, out, to);
    if (byte === quote) this.ended = true;
    else if (byte === backslash) this.#escape = "\\";
    else return this.#take(byte, out, to);
    return to;
  }

  #escaped(byte: number, out: Uint8Array, to: number): number {
    const escape = (this.#escape += String.fromCharCode(byte));
    if (escape.length === 2 && escape !== "\\u") {
      this.#escape = "";
      // No other escape stands for a base64 character.
      return this.#take(escape === "\\/" ? byte : 0, out, to);
    }
    if (escape.length < 6) return to;
    this.#escape = "";
    const digits = /^\\u00([\da-f]{2})$/i.exec(escape)?.[1];
    return this.#take(digits === undefined ? 0 : Number.parseInt(digits, 16), out, to);
  }

  #take(byte: number, out: Uint8Array, to: number): number {
    if (byte === padding) {
      this.#pads += 1;
      return to;
    }
    const value = values[byte] ?? other;
    if (value >= other || this.#pads > 0) {
      this.invalid = true;
      return to;
    }
    this.#seen |= value;
    this.#length += 1;
    this.#bits = (this.#bits << 6) | (value & 63);
    this.#count += 1;
    if (this.#count < 4) return to;
    const bits = this.#bits;
    out[to] = bits >> 16;
    out[to + 1] = (bits >> 8) & 255;
    out[to + 2] = bits & 255;
    this.#bits = this.#count = 0;
    return to + 3;
  }
}
