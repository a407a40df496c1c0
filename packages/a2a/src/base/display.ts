/**
 * Untrusted text (a name, an error, metadata) made safe to show on a terminal, in a log or on a page: it cannot move the cursor, reorder or
 * hide text.
 */

/**
 * Control characters except tab and line feed; those that change the direction of text, separate lines, annotate, or carry hidden text
 * (tags, variation selectors not after an ideograph); lone surrogates. The first alternative keeps the flags made of tags.
 */
const unsafe =
  // eslint-disable-next-line no-control-regex
  /(\u{1f3f4}[\u{e0061}-\u{e007a}]{5}\u{e007f})|[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufff9-\ufffb\ud800-\udfff\u{e0000}-\u{e00ff}\u{e01f0}-\u{e0fff}]|(?<!\p{Script=Han})[\u{e0100}-\u{e01ef}]/gu;

function picture(character: string): string {
  const code = character.codePointAt(0) ?? 0;
  if (code < 0x20) return String.fromCharCode(0x2400 + code);
  if (code === 0x7f) return "\u2421";
  return `<U+${code.toString(16).toUpperCase().padStart(4, "0")}>`;
}

function escape(character: string): string {
  return character
    .split("")
    .map((unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`)
    .join("");
}

/** Truncates a long text, between characters, and appends how much is missing. */
export function cut(text: string, limit: number): string {
  if (text.length <= limit) return text;
  const last = text.charCodeAt(limit - 1);
  const end = last >= 0xd800 && last < 0xdc00 ? limit - 1 : limit;
  return `${text.slice(0, end)}… (${text.length - end} more characters)`;
}

/** The text with visible signs for unsafe characters, truncated to `limit` characters (default: none). Keeps line breaks. */
export function plain(text: string, limit: number = Number.POSITIVE_INFINITY): string {
  return cut(text, limit)
    .replaceAll("\r\n", "\n")
    .replace(unsafe, (character, flag?: string) => flag ?? picture(character));
}

/** Like `plain`, but on one line: with spaces for line breaks and tabs. `limit`: maximum characters of `text` that are shown. */
export function line(text: string, limit = 1000): string {
  return plain(
    cut(text, limit)
      .replace(/(?<!\s)\s*\n\s*/g, " ")
      .replaceAll("\t", " "),
  );
}

/** The text with each unsafe character as a `\u` escape. JSON text still parses to the same value. */
export function escapeControls(text: string): string {
  return text.replace(unsafe, (character, flag?: string) => flag ?? escape(character));
}

/** A value as JSON on one line. It parses to the same value, and is safe to show. */
export function jsonLine(value: unknown): string {
  return escapeControls(JSON.stringify(value));
}

const entities: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};

/**
 * The text for HTML, between tags or in a quoted attribute. It is not safe in other places: in a script, in a style, or as the URL of a
 * link (`javascript:`).
 *
 * @param limit - Maximum characters of `text` to show. Default 1,000.
 */
export function html(text: string, limit = 1000): string {
  return plain(text, limit).replace(/[&<>"']/g, (character) => entities[character] ?? "");
}

/**
 * The method that `console.log` of Node, Bun and Deno calls to show its result instead of the object. Objects with getters have it, because
 * these runtimes do not show getters.
 */
export const inspected: unique symbol = Symbol.for("nodejs.util.inspect.custom");
