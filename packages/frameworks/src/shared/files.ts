import { defined } from "@parley/a2a/internal/base/defined";
import { bytesOf, file, type Part, type RawPart } from "@parley/a2a/model";

/** Default maximum size of an embedded file. */
export const defaultFileBytes: number = 8 * 1024 * 1024;

/** A file whose bytes arrive as parts of an artifact. */
export interface OpenFile {
  readonly filename: string | undefined;
  readonly mediaType: string;
  readonly parts: RawPart[];
  bytes: number;
}

/** Whether a part continues a file. A continuing part repeats the file's name and type, or has neither. */
function continues({ filename, mediaType }: RawPart, open: OpenFile): boolean {
  return (
    (filename === undefined || filename === open.filename) &&
    (mediaType === undefined || safeMediaType(mediaType) === open.mediaType)
  );
}

/** Joins the parts of files. Beyond `maxBytes`, a file's bytes are counted but not kept. */
export class FileParts {
  readonly #maxBytes: number;
  #open: OpenFile | undefined;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** Adds a part with bytes. If the part starts a new file, returns the previous file. */
  add(part: RawPart): OpenFile | undefined {
    const before = this.#open !== undefined && !continues(part, this.#open) ? this.end() : undefined;
    const { filename } = part;
    const mediaType = safeMediaType(part.mediaType);
    const open = (this.#open ??= { filename, mediaType, parts: [], bytes: 0 });
    const padding = part.raw.endsWith("==") ? 2 : part.raw.endsWith("=") ? 1 : 0;
    open.bytes += (part.raw.length * 3) / 4 - padding;
    if (open.bytes > this.#maxBytes) open.parts.length = 0;
    else open.parts.push(part);
    return before;
  }

  /** Returns the last file. */
  end(): OpenFile | undefined {
    const open = this.#open;
    this.#open = undefined;
    return open;
  }
}

/** Validates an agent's media type, because it becomes part of a URL. */
export function safeMediaType(mediaType = ""): string {
  return /^[\w.+-]{1,100}\/[\w.+-]{1,100}(?:; ?charset=[\w-]{1,40})?$/.test(mediaType)
    ? mediaType
    : "application/octet-stream";
}

/** Validates an agent's URL, because a page may link to it or show it as an image. `undefined` unless it is http(s), such as for `javascript:`. */
export function safeUrl(url: string): string | undefined {
  return URL.canParse(url) && /^https?:$/.test(new URL(url).protocol) ? url : undefined;
}

/** The content as a `data:` URL. `undefined` if the content is too large. */
export function dataUrlOf({ parts, mediaType, bytes }: OpenFile): string | undefined {
  const [first] = parts;
  if (first === undefined && bytes > 0) return undefined;
  return `data:${mediaType};base64,${parts.length === 1 ? (first?.raw ?? "") : joined(parts)}`;
}

function joined(parts: readonly RawPart[]): string {
  const pieces = parts.map((part) => bytesOf(part));
  const all = new Uint8Array(pieces.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const piece of pieces) {
    all.set(piece, at);
    at += piece.length;
  }
  return file(all).raw;
}

/** A user's file, from a `data:` or http(s) URL. */
export function fileOf(url: string, { mediaType, filename }: Named): Part {
  const options = defined({ mediaType, filename });
  const base64 = /^data:[^,]*;base64,(.*)$/s.exec(url)?.[1];
  if (base64 !== undefined) return file({ base64 }, options);
  const plain = /^data:[^,]*,(.*)$/s.exec(url)?.[1];
  if (plain !== undefined) return file(new TextEncoder().encode(decodeURIComponent(plain)), options);
  return file(new URL(url), options);
}

interface Named {
  readonly mediaType?: string | undefined;
  readonly filename?: string | undefined;
}
