/** Text that a server chose, made safe for a terminal: it can neither move the cursor nor hide what was written. */

// C0 except tab and line feed, DEL, C1, and the characters that change the direction of text.
// eslint-disable-next-line no-control-regex
const unsafe = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g;

function picture(character: string): string {
  const code = character.charCodeAt(0);
  if (code < 0x20) return String.fromCharCode(0x2400 + code);
  if (code === 0x7f) return "\u2421";
  return `<U+${code.toString(16).toUpperCase().padStart(4, "0")}>`;
}

/** The text with each control character replaced by a visible sign. Line breaks stay. */
export function plain(text: string): string {
  return text.replaceAll("\r\n", "\n").replace(unsafe, picture);
}

/** The same on one line: line breaks and tabs become spaces. */
export function line(text: string): string {
  return plain(text.replace(/(?<!\s)\s*\n\s*/g, " ").replaceAll("\t", " "));
}

/** A value as JSON on one line, with control characters as `\u` escapes: it parses to the same value. */
export function jsonLine(value: unknown): string {
  return JSON.stringify(value).replace(
    unsafe,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}
