import { A2AError } from "@parley/a2a";

/** Bytes that are no protobuf of the expected type. */
export function malformed(what: string): A2AError {
  return new A2AError("ParseError", `Not a valid protobuf message: ${what}`);
}

// A byte order mark is a character of the text like any other.
const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** ASCII of up to this many characters is put together here in less time than a call of the decoder takes. */
const shortText = 12;

/** Reads the primitives of the wire format. Every read checks that it stays inside of `bytes`. */
export class Reader {
  readonly bytes: Uint8Array;
  at = 0;
  /** Halves of the last `varint64`. */
  low = 0;
  high = 0;
  #view: DataView | undefined;

  constructor(bytes: Uint8Array) {
    this.bytes = bytes;
  }

  /** A varint as 32 bits without sign; what a longer one has above them is dropped, as every implementation does. */
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

  /** Exact: a string in JSON has no limit of precision. */
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
      throw malformed("text that is no UTF-8");
    }
  }

  /** A view, not a copy. */
  view(): Uint8Array {
    const length = this.uint32();
    const start = this.#take(length);
    return this.bytes.subarray(start, start + length);
  }

  /** Where the message or packed list ends whose length comes next. */
  end(): number {
    const length = this.uint32();
    if (length > this.bytes.length - this.at) this.#cut();
    return this.at + length;
  }

  /** Passes over a field that nobody knows. */
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
        throw malformed("a field of no known kind");
    }
  }

  #skipGroup(number: number, depth: number): void {
    if (depth > 64) throw malformed("groups in groups");
    for (;;) {
      const tag = this.uint32();
      if ((tag & 7) !== 4) this.skip(tag, depth);
      else if (tag >>> 3 === number) return;
      else throw malformed("a group that another one's end closes");
    }
  }

  #take(length: number): number {
    const start = this.at;
    if (length > this.bytes.length - start) this.#cut();
    this.at = start + length;
    return start;
  }

  #cut(): never {
    throw malformed("it breaks off");
  }
}
