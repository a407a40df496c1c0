import type { Bytes } from "./index.ts";

/**
 * A hash of bytes that come in pieces, 16 hexadecimal digits. WebCrypto hashes whole values only. Not cryptographic: it is compared with
 * what an earlier attempt of the same turn has stored.
 */
export class ByteHash {
  #a = 0x9e3779b1;
  #b = 0x85ebca77;
  size = 0;

  add(bytes: Bytes): void {
    let [a, b] = [this.#a, this.#b];
    for (let at = 0; at < bytes.length; at += 1) {
      const byte = bytes[at] as number;
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
