import { A2AError } from "@parley/a2a/model";

/** The error for bytes that are not a message of the expected type. */
export function malformed(what: string): A2AError {
  return new A2AError("ParseError", `Not a valid protobuf message: ${what}`);
}

// Without `ignoreBOM` the decoder would drop a byte order mark.
const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** Up to this many characters of ASCII are read faster here than by the decoder. */
const shortText = 12;

/** Reads the primitives of the wire format. Each read checks that it stays within `bytes`. */
export class Reader {
  readonly bytes: Uint8Array;
  at = 0;
  /** The halves of the last `varint64`. */
  low = 0;
  high = 0;
  #view: DataView | undefined;

  constructor(bytes: Uint8Array) {
    this.bytes = bytes;
  }

  /** A varint as unsigned 32 bits. Higher bits are dropped, as in every implementation. */
  uint32(): number {
    const { bytes } = this;
    let byte = bytes[this.at++] ?? this.#cut();
    if (byte < 0x80) return byte;
    let value = byte & 0x7f;
    for (let shift = 7; shift < 70; shift += 7) {
      byte = bytes[this.at++] ?? this.#cut();
      if (shift < 32) value |= (byte & 0x7f) << shift;
      if (byte < 0x80) return value >>> 0;
    }
    throw malformed("a number of more than ten bytes");
  }

  int32(): number {
    return this.uint32() | 0;
  }

  bool(): boolean {
    this.varint64();
    return (this.low | this.high) !== 0;
  }

  /** A varint of 64 bits into `low` and `high`. */
  varint64(): void {
    const { bytes } = this;
    let low = 0;
    let high = 0;
    for (let shift = 0; shift < 70; shift += 7) {
      const byte = bytes[this.at++] ?? this.#cut();
      const bits = byte & 0x7f;
      if (shift < 28) low |= bits << shift;
      else if (shift === 28) {
        low |= bits << 28;
        high |= bits >> 4;
      } else high |= bits << (shift - 32);
      if (byte < 0x80) {
        this.low = low >>> 0;
        this.high = high >>> 0;
        return;
      }
    }
    throw malformed("a number of more than ten bytes");
  }

  /** Exact, since ProtoJSON holds 64-bit numbers as strings. */
  int64(): bigint {
    this.varint64();
    return BigInt.asIntN(64, (BigInt(this.high) << 32n) | BigInt(this.low));
  }

  double(): number {
    const { buffer, byteOffset, length } = this.bytes;
    this.#view ??= new DataView(buffer, byteOffset, length);
    return this.#view.getFloat64(this.#take(8), true);
  }

  string(): string {
    const length = this.uint32();
    const start = this.#take(length);
    const { bytes } = this;
    const end = start + length;
    if (length <= shortText) {
      let text = "";
      for (let at = start; at < end; at++) {
        const byte = bytes[at] as number;
        if (byte > 0x7f) break;
        text += String.fromCharCode(byte);
      }
      if (text.length === length) return text;
    }
    try {
      return utf8.decode(bytes.subarray(start, end));
    } catch {
      throw malformed("text that is not UTF-8");
    }
  }

  /** Bytes with their length before them, as a view, not a copy. */
  view(): Uint8Array {
    const length = this.uint32();
    const start = this.#take(length);
    return this.bytes.subarray(start, start + length);
  }

  /** Reads the length of a message or packed list, and returns where it ends. */
  end(): number {
    const length = this.uint32();
    if (length > this.bytes.length - this.at) this.#cut();
    return this.at + length;
  }

  /** Skips an unknown field. */
  skip(tag: number, depth = 0): void {
    switch (tag & 7) {
      case 0:
        this.varint64();
        return;
      case 1:
        this.#take(8);
        return;
      case 2:
        this.#take(this.uint32());
        return;
      case 3:
        this.#skipGroup(tag >>> 3, depth + 1);
        return;
      case 5:
        this.#take(4);
        return;
      default:
        throw malformed("a field of an unknown wire type");
    }
  }

  #skipGroup(number: number, depth: number): void {
    if (depth > 64) throw malformed("groups nested too deep");
    for (;;) {
      const tag = this.uint32();
      if ((tag & 7) !== 4) this.skip(tag, depth);
      else if (tag >>> 3 === number) return;
      else throw malformed("a group with the end of another group");
    }
  }

  #take(length: number): number {
    const start = this.at;
    if (length > this.bytes.length - start) this.#cut();
    this.at = start + length;
    return start;
  }

  #cut(): never {
    throw malformed("it is incomplete");
  }
}
