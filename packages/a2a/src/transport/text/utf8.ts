/**
 * Text that arrives in bytes cut anywhere; a byte order mark at its beginning is dropped, what is no UTF-8 becomes
 * U+FFFD. Node decodes whole characters at once, and into strings half as large, where `stream: true` takes seven times
 * as long; so what is cut off is kept back here.
 */
export class Utf8Pieces {
  readonly #decoder = new TextDecoder("utf-8", { ignoreBOM: true });
  #rest: Uint8Array = new Uint8Array(0);
  #begun = false;

  /** The characters that this piece completes. */
  push(piece: Uint8Array): string {
    const bytes = this.#rest.length === 0 ? piece : joined(this.#rest, piece);
    const end = bytes.length - begunCharacter(bytes);
    this.#rest = bytes.slice(end);
    const text = this.#decoder.decode(end === bytes.length ? bytes : bytes.subarray(0, end));
    if (this.#begun) return text;
    this.#begun = text !== "";
    return text.replace(/^\uFEFF/, "");
  }
}

/** How many bytes at the end are the beginning of one more character. */
function begunCharacter(bytes: Uint8Array): number {
  for (let back = 1; back <= 3; back++) {
    const byte = bytes.at(-back) ?? 0;
    if (byte < 0x80) return 0;
    // A first byte says how long its character is.
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
