import { utf8Length } from "@parley/a2a/internal/base/index";
import type { JsonValue, Message } from "@parley/a2a/internal/model/index";

/** Whether a text takes more than `bytes` bytes in UTF-8. Counts its bytes only if it could exceed the limit. */
export function exceeds(text: string, bytes: number): boolean {
  return text.length * 3 > bytes && utf8Length(text) > bytes;
}

/** Memory of a message, of a part and of a value, each without its texts, in bytes. */
const perMessage = 512;
const perPart = 64;
const perValue = 16;

/** About how many bytes of memory a message takes: its characters and its objects. Faster than counting its UTF-8 bytes. */
export function sizeOf(message: Message): number {
  const { parts, metadata, extensions, referenceTaskIds } = message;
  let size = perMessage;
  for (const { text, raw, url, data, metadata: own, filename, mediaType } of parts) {
    size += perPart + (text?.length ?? raw?.length ?? url?.length ?? 0);
    if (data !== undefined) size += sizeOfValue(data);
    if (own !== undefined) size += sizeOfValue(own);
    if (filename !== undefined) size += filename.length;
    if (mediaType !== undefined) size += mediaType.length;
  }
  if (metadata !== undefined) size += sizeOfValue(metadata);
  if (extensions !== undefined) size += sizeOfValue(extensions);
  if (referenceTaskIds !== undefined) size += sizeOfValue(referenceTaskIds);
  return size;
}

/** About how many bytes of memory a JSON value takes. */
export function sizeOfValue(value: JsonValue | undefined): number {
  if (typeof value === "string") return perValue + value.length;
  if (typeof value !== "object" || value === null) return perValue;
  let size = perValue;
  for (const [name, member] of Object.entries(value)) size += name.length + sizeOfValue(member);
  return size;
}
