const encoder = new TextEncoder();

/**
 * Texts are encoded into it to be counted. Its content is never read. With a new buffer for each text, a record of 250
 * characters takes seven times as long (docs/decisions/hot-path.md).
 */
const scratch = new Uint8Array(1 << 14);

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
