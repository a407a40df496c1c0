/**
 * Text that comes in pieces. What is added with `+` takes 32 bytes a piece until it is read, which is much for pieces of
 * one character: so a thousand are joined at a time.
 */
export class Pieces {
  #text = "";
  #pieces: string[] = [];

  push(piece: string): void {
    if (this.#pieces.push(piece) > 999) this.#text = this.take();
  }

  /** All of it; what is pushed next begins another text. */
  take(): string {
    const text = this.#text + this.#pieces.join("");
    this.#text = "";
    this.#pieces = [];
    return text;
  }
}
