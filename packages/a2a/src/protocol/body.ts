import { A2AError } from "../model/index.ts";

/** Request bodies while they are received, on every host. */

/** The reader of a body. The budget tells it to continue, or to stop. */
export interface BodyReader {
  /** Called when there is room: read on. */
  resume(): void;
  /** Called when the body is refused: stop reading and answer with `error`. */
  refuse(error: A2AError): void;
}

/** Limits the memory of all bodies that are being received. */
export interface BodyBudget {
  /** Registers a body. `connection`: the connection that it shares with other bodies, as with HTTP/2. */
  enter(reader: BodyReader, connection?: object): BodyPlace;
}

/** One body in the budget. */
export interface BodyPlace {
  /** Reports how many bytes have come. A body that comes too slowly can be refused to make room for others. */
  came(bytes: number): void;
  /**
   * Says how much memory the body holds now, and how much it will hold at most, in bytes. `false`: there is no room, so
   * read nothing until the reader's `resume()` or `refuse()` is called.
   *
   * @throws A2AError `Unavailable` where too many bodies wait already.
   */
  hold(held: number, most: number): boolean;
  /** Says that the body holds at most so many bytes from now on, fewer than before. */
  shrink(most: number): void;
  /** Removes the body from the budget: it is complete, or no longer needed. */
  leave(): void;
}

/** Size in bytes up to which a body needs no room in the budget before it is read. */
export const smallBody: number = 64 * 1024;

/** Used where there is no budget. */
const anyPlace: BodyPlace = {
  came() {},
  hold: () => true,
  shrink() {},
  leave() {},
};

/** Collects a body in one buffer, under its own size limit and under the budget of all bodies. */
export class BodyBytes {
  readonly #limit: number;
  readonly #announced: number | undefined;
  readonly #place: BodyPlace;
  /** A body that comes in one piece is not copied. Most do. */
  #only: Uint8Array | undefined;
  #bytes: GrowingBytes | undefined;
  #size = 0;

  /**
   * @param limit - Largest body in bytes.
   * @param announced - The `Content-Length`, where there is one.
   * @param place - Its place in the budget. Default: no budget.
   */
  constructor(limit: number, announced: number | undefined, place: BodyPlace = anyPlace) {
    this.#limit = limit;
    this.#announced = announced;
    this.#place = place;
  }

  /**
   * Whether reading may begin. `false`: wait for the reader's `resume()` or `refuse()`.
   *
   * @throws A2AError `RequestTooLarge` where more than `limit` is announced, `Unavailable` where the budget is full.
   */
  begin(): boolean {
    const announced = this.#announced ?? 0;
    if (announced > this.#limit) throw this.#tooLarge();
    return announced <= smallBody || this.#place.hold(0, announced);
  }

  /**
   * Takes a piece. `false`: read nothing until the reader's `resume()` or `refuse()` is called.
   *
   * @throws A2AError `RequestTooLarge` where the body exceeds `limit`, `Unavailable` where the budget is full.
   */
  push(piece: Uint8Array): boolean {
    this.#size += piece.length;
    if (this.#size > this.#limit) throw this.#tooLarge();
    this.#place.came(piece.length);
    const held = this.#keep(piece);
    if (held === undefined) return true;
    return this.#place.hold(held, Math.max(held, this.#announced ?? (this.#size > smallBody ? this.#limit : 0)));
  }

  /** Returns the memory that is held now, where that has changed. */
  #keep(piece: Uint8Array): number | undefined {
    if (this.#size === piece.length && piece.buffer.byteLength <= 4 * piece.length) {
      this.#only = piece;
      return piece.length;
    }
    // A client may send more than it announced.
    const bytes = (this.#bytes ??= new GrowingBytes(Math.min(this.#announced ?? this.#limit, this.#limit)));
    const before = bytes.capacity;
    if (this.#only !== undefined) bytes.append(this.#only);
    this.#only = undefined;
    bytes.append(piece);
    return bytes.capacity === before ? undefined : bytes.capacity;
  }

  /** The complete body. */
  take(): Uint8Array {
    const bytes = this.#only ?? this.#bytes?.view() ?? new Uint8Array(0);
    this.leave();
    return bytes;
  }

  /** Releases the buffer, and the place in the budget. */
  leave(): void {
    this.#only = this.#bytes = undefined;
    this.#place.leave();
  }

  #tooLarge(): A2AError {
    return bodyTooLarge("Request body", this.#limit);
  }
}

/** The error for a body or a message of more than `limits.bodyBytes`. It names what its server can do. */
export function bodyTooLarge(what: string, limit: number): A2AError {
  const cure = "Send files as a url, raise limits.bodyBytes of the server, or set its option blobs for large files";
  return new A2AError("RequestTooLarge", `${what} larger than ${limit} bytes. ${cure}`);
}

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
