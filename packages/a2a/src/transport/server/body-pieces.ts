import { A2AError } from "../../model/index.ts";
import type { BodyPlace, BodyReader, ByteFlow, ByteReader } from "../../protocol/index.ts";

/**
 * The bytes of a body, which are asked for piece by piece. The sender waits while nobody asks, so that little more than one piece is in memory.
 */
export class BodyPieces implements ByteReader, BodyReader {
  #flow: ByteFlow | undefined;
  /** Its place among the bodies that are being received. */
  place: BodyPlace | undefined;
  /** Is told how many bytes were taken. */
  onBytes: ((bytes: number) => Promise<void> | void) | undefined;
  readonly #pieces: Uint8Array[] = [];
  /** What was taken and given back. */
  readonly #back: Uint8Array[] = [];
  #ended = false;
  #failure: Error | undefined;
  #wake: (() => void) | undefined;
  /** Whether there is no room for what has come. */
  #waits = false;

  /** Where the bytes come from. None comes before the first `next()`. */
  from(flow: ByteFlow): this {
    this.#flow = flow;
    return this;
  }

  /** The next piece; `undefined` after the last one. Rejects where the sender is gone, or the body is refused. */
  async next(): Promise<Uint8Array | undefined> {
    for (;;) {
      if (this.#failure !== undefined) throw this.#failure;
      const back = this.#back.shift();
      if (back !== undefined) return back;
      const piece = this.#waits ? undefined : this.#pieces.shift();
      if (piece !== undefined) {
        await this.onBytes?.(piece.length);
        return piece;
      }
      if (this.#ended && this.#pieces.length === 0) return undefined;
      // The next piece may come at once.
      const woken = new Promise<void>((resolve) => (this.#wake = resolve));
      if (!this.#waits) this.#flow?.resume();
      await woken;
    }
  }

  /** Gives a piece back: it is the next one again. */
  unread(piece: Uint8Array): void {
    if (piece.length > 0) this.#back.unshift(piece);
  }

  /** Says how much memory the body holds now, in bytes. Resolves when there is room for it. */
  async hold(bytes: number, most: number): Promise<void> {
    if (this.place?.hold(bytes, most) !== false) return;
    this.#waits = true;
    while (this.#waits && this.#failure === undefined) await new Promise<void>((resolve) => (this.#wake = resolve));
    if (this.#failure !== undefined) throw this.#failure;
  }

  /** Takes a piece. The sender waits until it is asked for. */
  chunk(bytes: Uint8Array): void {
    if (this.#failure !== undefined) return;
    this.#pieces.push(bytes);
    this.#flow?.pause();
    this.place?.came(bytes.length);
    this.#go();
  }

  /** Called when the body is complete. */
  end(): void {
    this.#ended = true;
    this.#go();
  }

  /** Called when the sender is gone before the body was complete. */
  gone(): void {
    this.refuse(new A2AError("InvalidRequest", "Request body broke off"));
  }

  /** Called when there is room for what the body holds. */
  resume(): void {
    this.#waits = false;
    this.#go();
  }

  /** Reads nothing more: whoever waits for a piece gets the error. */
  refuse(error: Error): void {
    this.#failure ??= error;
    this.#pieces.length = this.#back.length = 0;
    this.#flow?.pause();
    this.#go();
  }

  /** Reads nothing more. */
  close(): void {
    this.place?.leave();
    if (!this.#ended) this.refuse(new A2AError("InvalidRequest", "Request body is not read any more"));
  }

  #go(): void {
    const wake = this.#wake;
    this.#wake = undefined;
    wake?.();
  }
}
