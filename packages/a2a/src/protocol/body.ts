import { A2AError } from "../model/index.ts";
import { GrowingBytes } from "./growing-bytes.ts";

/** Request bodies while they come in, on every host. */

/** Who reads a body: told when it may read on, and when it has to stop. */
export interface BodyReader {
  /** There is room again. */
  resume(): void;
  /** Nothing more is read of this body: it is to be answered with `error`. */
  refuse(error: A2AError): void;
}

/** A bound on what all bodies hold together that are still coming in (D17). */
export interface BodyBudget {
  /** Takes a body in. `connection`: what it shares with others, where one connection carries many requests. */
  enter(reader: BodyReader, connection?: object): BodyPlace;
}

/** The place of one body in the budget. */
export interface BodyPlace {
  /** Reports progress: a body of which too little comes can be refused to make room for others. */
  came(bytes: number): void;
  /**
   * Says what the body holds by now and the most that it will, in bytes. `false`: there is no room for so much at the
   * moment, wait for the reader's `resume()` or `refuse()` before more is read.
   *
   * @throws A2AError `Unavailable` where there is no room to wait either.
   */
  hold(held: number, most: number): boolean;
  /** The body is whole, or of no interest any more. */
  leave(): void;
}

/** Larger bodies are announced to the budget as a whole, before more of them is read. */
export const smallBody: number = 64 * 1024;

/** The place of a body where there is no budget. */
const anyPlace: BodyPlace = {
  came() {},
  hold: () => true,
  leave() {},
};

/** What has come of a body: gathered in one buffer, under the limit of one body and the budget of all. */
export class BodyBytes {
  readonly #limit: number;
  readonly #announced: number | undefined;
  readonly #place: BodyPlace;
  /** A body in one piece, which most are, is not copied. */
  #only: Uint8Array | undefined;
  #bytes: GrowingBytes | undefined;
  #size = 0;

  /**
   * @param limit - Most bytes that are taken.
   * @param announced - How many are going to come, where that is known.
   */
  constructor(limit: number, announced: number | undefined, place: BodyPlace = anyPlace) {
    this.#limit = limit;
    this.#announced = announced;
    this.#place = place;
  }

  /**
   * Whether reading may begin; else wait to be told.
   *
   * @throws A2AError `RequestTooLarge` for what is announced as too large, `Unavailable`.
   */
  begin(): boolean {
    const announced = this.#announced ?? 0;
    if (announced > this.#limit) throw this.#tooLarge();
    return announced <= smallBody || this.#place.hold(0, announced);
  }

  /**
   * Takes a piece; `false`: read no more before you are told to.
   *
   * @throws A2AError `RequestTooLarge`, `Unavailable`.
   */
  push(piece: Uint8Array): boolean {
    this.#size += piece.length;
    if (this.#size > this.#limit) throw this.#tooLarge();
    this.#place.came(piece.length);
    const held = this.#keep(piece);
    if (held === undefined) return true;
    return this.#place.hold(held, Math.max(held, this.#announced ?? (this.#size > smallBody ? this.#limit : 0)));
  }

  /** Gives what is held now, where that has changed. */
  #keep(piece: Uint8Array): number | undefined {
    if (this.#size === piece.length && piece.buffer.byteLength <= 4 * piece.length) {
      this.#only = piece;
      return piece.length;
    }
    // A peer may send more than it announced.
    const bytes = (this.#bytes ??= new GrowingBytes(Math.min(this.#announced ?? this.#limit, this.#limit)));
    const before = bytes.capacity;
    if (this.#only !== undefined) bytes.append(this.#only);
    this.#only = undefined;
    bytes.append(piece);
    return bytes.capacity === before ? undefined : bytes.capacity;
  }

  /** The body, which is whole. */
  take(): Uint8Array {
    const bytes = this.#only ?? this.#bytes?.view() ?? new Uint8Array(0);
    this.leave();
    return bytes;
  }

  /** Lets go of what has come. */
  leave(): void {
    this.#only = this.#bytes = undefined;
    this.#place.leave();
  }

  #tooLarge(): A2AError {
    return new A2AError("RequestTooLarge", `Request body larger than ${this.#limit} bytes`);
  }
}
