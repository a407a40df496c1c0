/**
 * Whether JSON text opens more than `limit` levels of arrays and objects at once. Read before it is parsed: a megabyte
 * of brackets costs a parser hundreds of megabytes, and what walks the value afterwards its stack.
 */
export function nestsDeeper(text: string, limit: number): boolean {
  if (text.length <= limit) return false;
  let depth = 0;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === 0x22) at = endOfString(text, at);
    // Brackets are braces but for one bit.
    else if ((code | 0x20) === 0x7d) depth--;
    else if ((code | 0x20) === 0x7b && ++depth > limit) return true;
  }
  return false;
}

/** Where the string that opens at `start` closes. Goes from quote to quote, so that a long base64 string costs next to nothing. */
function endOfString(text: string, start: number): number {
  for (let quote = text.indexOf('"', start + 1); quote >= 0; quote = text.indexOf('"', quote + 1)) {
    let escapes = quote;
    while (text.charCodeAt(escapes - 1) === 0x5c) escapes--;
    if ((quote - escapes) % 2 === 0) return quote;
  }
  return text.length;
}
