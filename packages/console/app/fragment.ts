/* Encodes parts of URL fragments. Input is untrusted: anyone can write a link, and agents choose IDs. */

/** Decodes a part. Returns it unchanged if its encoding is invalid. */
export function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

/** Encodes a text. Replaces lone surrogates, which have no encoding. */
export function encoded(text: string): string {
  return encodeURIComponent(text.replace(/\p{Surrogate}/gu, "\ufffd"));
}
