import { afterString } from "../../base/json-text.ts";

/**
 * Whether JSON text opens more than `limit` levels of arrays and objects at once. Read before it is parsed: a megabyte
 * of brackets costs a parser hundreds of megabytes, and what walks the value afterwards its stack.
 */
export function nestsDeeper(text: string, limit: number): boolean {
  if (text.length <= limit) return false;
  let depth = 0;
  for (let at = 0; at < text.length;) {
    const code = text.charCodeAt(at++);
    if (code === 0x22) at = afterString(text, at);
    // Brackets are braces but for one bit.
    else if ((code | 0x20) === 0x7d) depth--;
    else if ((code | 0x20) === 0x7b && ++depth > limit) return true;
  }
  return false;
}
