const encoder = new TextEncoder();

/** Up to this length in characters a loop is faster than the encoder, which needs a buffer. */
const short = 1024;
const bufferBytes = 1 << 16;

/** How many bytes a text takes in UTF-8. A lone surrogate counts as the three bytes of the character that replaces it. */
export function utf8Length(text: string): number {
  return text.length <= short ? lengthOfShort(text) : lengthOfLong(text);
}

function lengthOfShort(text: string): number {
  let bytes = text.length;
  for (let i = 0; i < text.length; i += 1) {
    const unit = text.charCodeAt(i);
    if (unit < 0x80) continue;
    if (unit < 0x800) bytes += 1;
    else if (isPair(unit, text.charCodeAt(i + 1))) {
      // Four bytes for two units.
      bytes += 2;
      i += 1;
    } else bytes += 2;
  }
  return bytes;
}

function isPair(high: number, low: number): boolean {
  return high >= 0xd800 && high < 0xdc00 && low >= 0xdc00 && low < 0xe000;
}

/** Encodes in steps into one small buffer, because a copy of the whole would be as large as the text. */
function lengthOfLong(text: string): number {
  const buffer = new Uint8Array(Math.min(bufferBytes, 3 * text.length));
  let bytes = 0;
  for (let at = 0; at < text.length;) {
    const { read, written } = encoder.encodeInto(text.slice(at), buffer);
    at += read;
    bytes += written;
  }
  return bytes;
}
