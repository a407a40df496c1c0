import type { JsonValue, Message } from "./types.ts";

/**
 * Tells the retry of a message from other content under its id (D8), whatever binding or version it came by: members
 * count in sorted order, and empty lists of a message, which protobuf does not carry, count as absent.
 *
 * Two lanes of 32 bits, fast and synchronous, not cryptographic: the hash is only ever compared with that of one earlier
 * message of the same owner under the same id, so chance is 1 in 2⁶⁴ and whoever forges one deceives nobody but themselves.
 */
export function contentHash(message: Message): string {
  const hash = new Lanes();
  const present = Object.entries(message).filter(([, value]) => !Array.isArray(value) || value.length > 0);
  feed(hash, Object.fromEntries(present));
  return hash.digest();
}

function feed(hash: Lanes, value: JsonValue): void {
  if (typeof value === "string") hash.addText(value);
  else if (typeof value !== "object" || value === null) hash.addText(String(value), 1);
  else if (Array.isArray(value)) {
    hash.add(2, value.length);
    for (const item of value as readonly JsonValue[]) feed(hash, item);
  } else {
    const object = value as { readonly [name: string]: JsonValue | undefined };
    const names = Object.keys(object).filter((name) => object[name] !== undefined);
    hash.add(3, names.length);
    for (const name of names.sort()) {
      hash.addText(name);
      feed(hash, object[name] as JsonValue);
    }
  }
}

class Lanes {
  #a = 0x9e3779b1;
  #b = 0x85ebca77;

  add(kind: number, length: number): void {
    this.#mix(kind);
    this.#mix(length);
  }

  /** Its kind and length go first, so that no two values can be cut differently into the same characters. */
  addText(text: string, kind = 0): void {
    this.add(kind, text.length);
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

  digest(): string {
    this.#mix(0);
    this.#mix(1);
    return hex(this.#a ^ Math.imul(this.#b, 0x27d4eb2f)) + hex(this.#b ^ (this.#a >>> 7));
  }

  #mix(value: number): void {
    this.#a = Math.imul(this.#a ^ value, 0x85ebca77);
    this.#b = Math.imul(this.#b ^ value, 0xc2b2ae3d);
    this.#a ^= this.#a >>> 16;
    this.#b ^= this.#b >>> 15;
  }
}

function hex(lane: number): string {
  return (lane >>> 0).toString(16).padStart(8, "0");
}
