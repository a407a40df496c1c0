const none = new Uint8Array(0);

/** Size of the first buffer, in bytes; each next one is twice as large. */
const smallest = 1024;

/**
 * Bytes that come in pieces, in one buffer: what is held does not depend on how small the pieces are, and none of them
 * is kept, since a piece can hold on to the much larger buffer that it was cut from.
 */
export class GrowingBytes {
  readonly #most: number;
  #bytes: Uint8Array = none;
  #length = 0;

  /** `most`: how many bytes are expected; no buffer is larger than that unless more of them come. */
  constructor(most: number) {
    this.#most = most;
  }

  get length(): number {
    return this.#length;
  }

  /** Bytes of memory. */
  get capacity(): number {
    return this.#bytes.length;
  }

  append(piece: Uint8Array): void {
    const length = this.#length + piece.length;
    if (length > this.#bytes.length) {
      const twice = Math.max(smallest, 2 * this.#bytes.length, length);
      const larger = new Uint8Array(length > this.#most ? twice : Math.min(this.#most, twice));
      larger.set(this.#bytes.subarray(0, this.#length));
      this.#bytes = larger;
    }
    this.#bytes.set(piece, this.#length);
    this.#length = length;
  }

  /** What has come, without a copy. */
  view(): Uint8Array {
    return this.#bytes.subarray(0, this.#length);
  }
}
