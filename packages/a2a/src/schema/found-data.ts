import { bytesOf, isDataPart, isRawPart, isTextPart, type Part } from "../model/index.ts";

/** A value that a part holds as JSON, and where it is. */
export interface FoundData {
  /** Path of the value, such as `message.parts[0].data`. */
  readonly field: string;
  /** The value; absent where the part says that it is JSON, and is not. */
  readonly value?: unknown;
}

/**
 * The JSON of parts, in their order: data parts, and texts and files that are JSON by their media type. What is not marked as JSON
 * is not guessed at.
 *
 * @param path - Of the list, such as `message.parts`.
 */
export function dataInParts(parts: readonly Part[], path: string): readonly FoundData[] {
  return parts.flatMap((part, at) => {
    const place = `${path}[${at}]`;
    if (isDataPart(part)) return [{ field: `${place}.data`, value: part.data }];
    if (!isJson(part.mediaType)) return [];
    if (isTextPart(part)) return [parsed(`${place}.text`, () => part.text)];
    if (isRawPart(part)) return [parsed(`${place}.raw`, () => utf8.decode(bytesOf(part)))];
    return [];
  });
}

const utf8 = new TextDecoder("utf-8", { fatal: true });

function parsed(field: string, read: () => string): FoundData {
  try {
    return { field, value: JSON.parse(read()) as unknown };
  } catch {
    return { field };
  }
}

/** `application/json`, or a type whose format is JSON (RFC 6839 §3.1), with any parameters. */
function isJson(mediaType = ""): boolean {
  return /^\s*(application\/json|[\w.+-]+\/[\w.+-]+\+json)\s*(;|$)/i.test(mediaType);
}
