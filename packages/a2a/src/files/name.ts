import { utf8Length } from "../base/index.ts";

/* Names of files, which strangers choose. */

/** Names that Windows reserves for devices, with any extension. It ignores spaces before the extension, and reads small raised digits as digits. */
const reserved = /^(?:con|prn|aux|nul|conin\$|conout\$|com[\d¹²³]|lpt[\d¹²³]) *(?:\.|$)/i;
/** Bytes of a name in UTF-8. Most file systems allow 255; the rest is for what a program adds to it. */
const maxBytes = 200;
const maxOfExtension = 40;

/**
 * A safe name for a file whose name a stranger chose: one segment of a path, without control characters and characters that change the
 * direction of text, no hidden file, no name that an operating system reserves, and at most 200 bytes of UTF-8. A file of that name is
 * inside the folder that it is joined to.
 *
 * @param otherwise - The name where nothing is left. Default `file`.
 *
 * @example
 * ```ts
 * safeFileName("../../etc/passwd"); // "passwd"
 * ```
 */
export function safeFileName(name: string, otherwise = "file"): string {
  // Of a very long name only the end can matter, and normalizing takes time.
  const [last = ""] = name.slice(-4096).normalize("NFC").split(/[/\\]/).slice(-1);
  const cleaned = last
    .replace(/[\p{Cc}\p{Cf}\p{Co}\p{Cs}\u2028\u2029<>:"|?*]/gu, "_")
    .replace(/^[.\s-]+/u, "")
    .replace(/(?<![.\s])[.\s]+$/u, "");
  const extension = extensionIn(cleaned);
  const ending = withinBytes(extension, maxOfExtension);
  const stem = cleaned.slice(0, cleaned.length - extension.length);
  const short = `${withinBytes(stem, maxBytes - utf8Length(ending))}${ending}`.replace(/(?<![.\s])[.\s]+$/u, "");
  if (short === "") return otherwise;
  return reserved.test(short) ? `_${short}` : short;
}

/** The extension of a file name with its dot; `""` where there is none. */
export function extensionIn(name: string): string {
  const dot = name.lastIndexOf(".");
  return dot <= 0 || dot === name.length - 1 ? "" : name.slice(dot);
}

/** The beginning of a text. A character is never cut in half. */
function withinBytes(text: string, most: number): string {
  if (utf8Length(text) <= most) return text;
  let bytes = 0;
  let kept = "";
  for (const character of text) {
    bytes += utf8Length(character);
    if (bytes > most) return kept;
    kept += character;
  }
  return kept;
}
