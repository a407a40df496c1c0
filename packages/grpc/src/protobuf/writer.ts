const encoder = new TextEncoder();

/** Strings of up to this many characters are encoded in place, with room for three bytes a character. */
const shortText = 1024;

/** Up to this many characters of ASCII are written faster here than by the encoder. */
const shortAscii = 24;

/** A buffer larger than this many bytes is not kept. */
const keptSize = 256 * 1024;

/** Writes the primitives of the wire format into one buffer that grows. */
export class Writer {
  bytes: Uint8Array;
  at = 0;
  #view: DataView | undefined;

  constructor(size = 256) {
    this.bytes = new Uint8Array(size);
  }

  /** What is written, as a view of the buffer. Copy it before the next write. */
  written(): Uint8Array {
    return this.bytes.subarray(0, this.at);
  }

  /** Discards what is written, and keeps the buffer. */
  reset(): void {
    this.at = 0;
    if (this.bytes.length > keptSize) this.bytes = new Uint8Array(256);
  }

  /** Leaves `count` bytes for the caller to fill in later. Returns where they begin. */
  skip(count: number): number {
    if (this.at + count > this.bytes.length) this.#grow(count);
    this.at += count;
    return this.at - count;
  }

  uint32(value: number): void {
    if (this.at + 5 > this.bytes.length) this.#grow(5);
    this.#varint(value);
  }

  /** Needs room for five bytes. */
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
    if (value.length > shortText) {
      this.blob(encoder.encode(value));
      return;
    }
    const room = value.length * 3;
    if (this.at + room + 2 > this.bytes.length) this.#grow(room + 2);
    if (value.length <= shortAscii && this.#ascii(value)) return;
    // Room for the length if the text is ASCII. `close` makes more room where it is needed.
    const start = this.at + (value.length > 0x7f ? 2 : 1);
    const { written } = encoder.encodeInto(value, this.bytes.subarray(start, start + room));
    const { at } = this;
    this.at = start + written;
    this.#close(at, start);
  }

  /** Writes a text if it is ASCII, and returns whether it is. Needs room for it. */
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

  /** Begins a field with its length before it. Returns the argument for `close`. */
  open(): number {
    if (this.at === this.bytes.length) this.#grow(1);
    return this.at++;
  }

  /** Ends the field that `open` began. */
  close(opened: number): void {
    this.#close(opened, opened + 1);
  }

  /** Writes to `at` the length of what begins at `start`, and moves that if the length needs more or less room. */
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
