/* Parts of the fragment of a URL. Anyone can write a link, and agents choose IDs. */

/** A part as text; unchanged if its encoding is wrong. */
export function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** A text as a part. A lone surrogate has no encoding, and is replaced. */
export function encoded(text: string): string {
  return encodeURIComponent(text.replace(/\p{Surrogate}/gu, "\ufffd"));
}
