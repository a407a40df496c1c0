/* The size of text in UTF-8, and text that arrives in pieces. */

const encoder = /* @__PURE__ */ new TextEncoder();

/** Texts are encoded into it to be counted. A new buffer for each takes seven times as long (docs/decisions/hot-path.md). */
const scratch = /* @__PURE__ */ new Uint8Array(1 << 14);

/** How many bytes a text takes in UTF-8. A lone surrogate counts as the three bytes of the character that replaces it. */
export function utf8Length(text: string): number {
  let { read, written: bytes } = encoder.encodeInto(text, scratch);
  while (read < text.length) {
    const step = encoder.encodeInto(text.slice(read), scratch);
    read += step.read;
    bytes += step.written;
  }
  return bytes;
}

/** Joins pieces of text, a thousand at a time: `+=` keeps 32 bytes for each piece until the text is read. */
export class Pieces {
  #text = "";
  #pieces: string[] = [];

  push(piece: string): void {
    if (this.#pieces.push(piece) > 999) this.#text = this.take();
  }

  /** Returns all of the text. The next piece begins another text. */
  take(): string {
    const text = this.#text + this.#pieces.join("");
    this.#text = "";
    this.#pieces = [];
    return text;
  }
}

/**
 * Decodes UTF-8 in pieces that may be cut inside a character. Drops a byte order mark; invalid bytes become U+FFFD. `TextDecoder` with
 * `stream: true` takes seven times as long in Node, and twice the memory.
 */
export class Utf8Pieces {
  readonly #decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  #rest: Uint8Array = new Uint8Array(0);
  #begun = false;

  /** The characters that this piece completes. */
  push(piece: Uint8Array): string {
    const bytes = this.#rest.length === 0 ? piece : joined(this.#rest, piece);
    const end = bytes.length - incompleteBytes(bytes);
    this.#rest = bytes.slice(end);
    const text = this.#decoder.decode(end === bytes.length ? bytes : bytes.subarray(0, end));
    if (this.#begun) return text;
    this.#begun = text !== "";
    return text.replace(/^\uFEFF/, "");
  }
}

/** How many bytes at the end belong to a character that is not complete. */
function incompleteBytes(bytes: Uint8Array): number {
  for (let back = 1; back <= 3; back++) {
    const byte = bytes.at(-back) ?? 0;
    if (byte < 0x80) return 0;
    // The first byte of a character says how many bytes the character has.
    if (byte >= 0xc0) return back < (byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2) ? back : 0;
  }
  return 0;
}

function joined(first: Uint8Array, second: Uint8Array): Uint8Array {
  const bytes = new Uint8Array(first.length + second.length);
  bytes.set(first);
  bytes.set(second, first.length);
  return bytes;
}
