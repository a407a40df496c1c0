/** Reads base64 in pieces of any length. It may be several texts one behind the other, each with its padding. */
export class Base64Reader {
  #rest = "";

  /** The bytes that are whole with this piece. */
  push(piece: Uint8Array): Uint8Array {
    const text = this.#rest + Buffer.from(piece).toString("latin1");
    const whole = text.length - (text.length % 4);
    this.#rest = text.slice(whole);
    const parts = text.slice(0, whole).match(/[^=]+=*/g) ?? [];
    return Buffer.concat(parts.map((part) => Buffer.from(part, "base64")));
  }
}
