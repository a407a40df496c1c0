const none = new Uint8Array(0);

/** Size of the first buffer in bytes. Each next one is twice as large. */
const smallest = 1024;

/**
 * Collects pieces of bytes in one buffer. The memory that it takes does not depend on the size of the pieces. It keeps none
 * of them, because a piece can be a view of a much larger buffer.
 */
export class GrowingBytes {
  readonly #most: number;
  #bytes: Uint8Array = none;
  #length = 0;

  /** `most`: how many bytes are expected. The buffer grows larger only where more of them come. */
  constructor(most: number) {
    this.#most = most;
  }

  /** How many bytes have come. */
  get length(): number {
    return this.#length;
  }

  /** Size of the buffer in bytes. */
  get capacity(): number {
    return this.#bytes.length;
  }

  /** Copies a piece to the end. */
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

  /** The bytes so far, without a copy. The view is valid until the next `append()`. */
  view(): Uint8Array {
    return this.#bytes.subarray(0, this.#length);
  }
}
