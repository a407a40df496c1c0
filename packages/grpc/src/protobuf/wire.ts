import { A2AError } from "@parley/a2a/model";

/** The error for bytes that are not a message of the expected type. */
export function malformed(what: string): A2AError {
  return new A2AError("ParseError", `Not a valid protobuf message: ${what}`);
}

// Without `ignoreBOM` the decoder would drop a byte order mark.
const utf8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** Up to this length, reading ASCII in JavaScript is faster than `TextDecoder`. */
const maxAsciiDecoded = 12;

/** Reads the primitives of the wire format within the bounds of `bytes`. */
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

  /** Exact: ProtoJSON holds 64-bit numbers as strings. */
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
    if (length <= maxAsciiDecoded) {
      let text = "";
      for (let at = start; at < end; at++) {
        const byte = bytes[at] ?? this.#cut();
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

  /** Length-delimited bytes as a view. */
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
    const type = tag & 7;
    if (type === 0) this.varint64();
    else if (type === 1) this.#take(8);
    else if (type === 2) this.#take(this.uint32());
    else if (type === 3) this.#skipGroup(tag >>> 3, depth + 1);
    else if (type === 5) this.#take(4);
    else throw malformed("a field of an unknown wire type");
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

const encoder = new TextEncoder();

/** Strings of up to this length are encoded in place, with room for three bytes per character. */
const maxEncodedInPlace = 1024;

/** Up to this length, writing ASCII in JavaScript is faster than `TextEncoder`. */
const maxAsciiEncoded = 24;

/** Maximum size of a buffer that the writer keeps for reuse. */
const keptSize = 256 * 1024;

/** Writes the primitives of the wire format into one buffer that grows. */
export class Writer {
  bytes: Uint8Array;
  at = 0;
  #view: DataView | undefined;

  constructor(size = 256) {
    this.bytes = new Uint8Array(size);
  }

  /** The written bytes as a view. Copy it before the next write. */
  written(): Uint8Array {
    return this.bytes.subarray(0, this.at);
  }

  /** Discards the written bytes, and keeps the buffer. */
  reset(): void {
    this.at = 0;
    if (this.bytes.length > keptSize) this.bytes = new Uint8Array(256);
  }

  /** Reserves `count` bytes to fill in later. Returns their start. */
  skip(count: number): number {
    if (this.at + count > this.bytes.length) this.#grow(count);
    this.at += count;
    return this.at - count;
  }

  uint32(value: number): void {
    if (this.at + 5 > this.bytes.length) this.#grow(5);
    this.#varint(value);
  }

  /** Callers must reserve five bytes. */
  #varint(value: number): void {
    const { bytes } = this;
    let rest = value;
    while (rest > 0x7f) {
      bytes[this.at++] = (rest & 0x7f) | 0x80;
      rest >>>= 7;
    }
    bytes[this.at++] = rest;
  }

  /** A negative number takes ten bytes, as a 64-bit one does. */
  int32(value: number): void {
    if (value >= 0) this.uint32(value);
    else this.int64(BigInt(value));
  }

  int64(value: bigint): void {
    let rest = BigInt.asUintN(64, value);
    while (rest > 0xffff_ffffn) {
      this.uint8(Number(rest & 0x7fn) | 0x80);
      rest >>= 7n;
    }
    this.uint32(Number(rest));
  }

  uint8(value: number): void {
    if (this.at === this.bytes.length) this.#grow(1);
    this.bytes[this.at++] = value;
  }

  double(value: number): void {
    if (this.at + 8 > this.bytes.length) this.#grow(8);
    if (this.#view?.buffer !== this.bytes.buffer) this.#view = new DataView(this.bytes.buffer);
    this.#view.setFloat64(this.at, value, true);
    this.at += 8;
  }

  string(value: string): void {
    if (value.length > maxEncodedInPlace) {
      this.blob(encoder.encode(value));
      return;
    }
    const room = value.length * 3;
    if (this.at + room + 2 > this.bytes.length) this.#grow(room + 2);
    if (value.length <= maxAsciiEncoded && this.#ascii(value)) return;
    // Reserves the length prefix for ASCII. `close` makes space for a longer one.
    const start = this.at + (value.length > 0x7f ? 2 : 1);
    const { written } = encoder.encodeInto(value, this.bytes.subarray(start, start + room));
    const { at } = this;
    this.at = start + written;
    this.#close(at, start);
  }

  /** Writes text if it is ASCII, and returns whether it is. Callers must reserve its length. */
  #ascii(value: string): boolean {
    const { bytes } = this;
    const { length } = value;
    let at = this.at + 1;
    for (let index = 0; index < length; index++) {
      const code = value.charCodeAt(index);
      if (code > 0x7f) return false;
      bytes[at++] = code;
    }
    bytes[this.at] = length;
    this.at = at;
    return true;
  }

  blob(value: Uint8Array): void {
    this.uint32(value.length);
    if (this.at + value.length > this.bytes.length) this.#grow(value.length);
    this.bytes.set(value, this.at);
    this.at += value.length;
  }

  /** Begins a length-delimited field. Returns the argument for `close`. */
  open(): number {
    if (this.at === this.bytes.length) this.#grow(1);
    return this.at++;
  }

  /** Ends the field that `open` began. */
  close(opened: number): void {
    this.#close(opened, opened + 1);
  }

  /** Writes the length of the bytes since `start` at `at`. Moves the bytes if the length prefix needs more or less space. */
  #close(at: number, start: number): void {
    const length = this.at - start;
    const wanted = length < 0x80 ? 1 : length < 0x4000 ? 2 : length < 0x20_0000 ? 3 : length < 0x1000_0000 ? 4 : 5;
    const moved = at + wanted - start;
    if (moved !== 0) {
      if (this.at + moved > this.bytes.length) this.#grow(moved);
      this.bytes.copyWithin(at + wanted, start, this.at);
    }
    this.at = at;
    this.#varint(length);
    this.at += length;
  }

  #grow(wanted: number): void {
    const grown = new Uint8Array(Math.max(this.bytes.length * 2, this.at + wanted + 64));
    grown.set(this.bytes.subarray(0, this.at));
    this.bytes = grown;
  }
}
