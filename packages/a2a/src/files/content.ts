import { utf8Length, type Bytes } from "../base/index.ts";
import { A2AError, fromBase64, type Part } from "../model/index.ts";
import type { ByteStream, FileContent, FileFetch } from "../protocol/index.ts";

/* The bytes of parts, and the names of the files that they form. */

/** Characters of base64 that are decoded at a time. A multiple of four. */
const step = 256 << 10;

/** Size in bytes of base64 text after decoding. */
export function sizeOfBase64(raw: string): number {
  const padding = raw.endsWith("==") ? 2 : raw.endsWith("=") ? 1 : 0;
  return Math.floor(((raw.length - padding) * 3) / 4);
}

/** The bytes of base64 text in pieces, so that the memory never holds a second copy of all bytes. */
export function* decoded(raw: string): Generator<Bytes, void, void> {
  for (let at = 0; at < raw.length; at += step) yield fromBase64(raw.slice(at, at + step));
}

/** A data part as a file. */
export function jsonFile(data: unknown): Bytes {
  return new TextEncoder().encode(`${JSON.stringify(data, null, 2)}\n`);
}

/** The bytes of text in pieces. Waits for the second half of a surrogate pair that is split between two pieces. */
export class TextPieces {
  readonly #encoder = new TextEncoder();
  #half = "";

  *push(text: string): Generator<Bytes, void, void> {
    for (let at = 0; at < text.length; at += step) {
      const piece = this.#half + text.slice(at, at + step);
      const last = piece.charCodeAt(piece.length - 1);
      this.#half = last >= 0xd800 && last < 0xdc00 ? piece.slice(-1) : "";
      yield this.#encoder.encode(piece.slice(0, piece.length - this.#half.length));
    }
  }

  /** Bytes of a surrogate whose second half never arrived. */
  end(): Bytes {
    const rest = this.#half;
    this.#half = "";
    return this.#encoder.encode(rest);
  }
}

/**
 * Whether a part continues the file of the previous part: both have bytes, or both have text, with the same name and type. Bytes without a
 * name are a separate file.
 */
export function continues(before: Part, part: Part): boolean {
  if (before.filename !== part.filename || before.mediaType !== part.mediaType) return false;
  if (part.text !== undefined) return before.text !== undefined;
  return part.raw !== undefined && before.raw !== undefined && part.filename !== undefined && part.filename !== "";
}

/**
 * The name of the file that starts with a part: the file name of the part, the last segment of its URL, or the name of its artifact with
 * an extension.
 *
 * @param extensionOf - The extension of a media type, without its dot, if it is known.
 */
export function fileName(
  part: Part,
  otherwise: string,
  extensionOf: (mediaType: string) => string | undefined = () => undefined,
): string {
  if (part.filename !== undefined && part.filename !== "") return safeFileName(part.filename);
  if (part.url !== undefined) return safeFileName(lastSegment(part.url));
  const base = safeFileName(otherwise);
  return extensionIn(base) === "" ? `${base}.${extensionFor(part, extensionOf)}` : base;
}

function lastSegment(url: string): string {
  const last = URL.canParse(url) ? (new URL(url).pathname.split("/").at(-1) ?? "") : "";
  try {
    return decodeURIComponent(last);
  } catch {
    return last;
  }
}

function extensionFor(part: Part, extensionOf: (mediaType: string) => string | undefined): string {
  const known = part.mediaType === undefined ? undefined : extensionOf(part.mediaType);
  if (known !== undefined) return known;
  if (part.text !== undefined) return part.mediaType === "text/markdown" ? "md" : "txt";
  return part.data === undefined ? "bin" : "json";
}

/** A stream of the values of a generator. The generator starts with the first read, and `cancel` ends it. */
export function streamOf(open: () => AsyncGenerator<Bytes, void, void> | Generator<Bytes, void, void>): ByteStream {
  let pieces: AsyncGenerator<Bytes, void, void> | Generator<Bytes, void, void> | undefined;
  const stream = new ReadableStream<Bytes>(
    {
      async pull(controller) {
        const next = await (pieces ??= open()).next();
        if (next.done === true) controller.close();
        else controller.enqueue(next.value);
      },
      async cancel() {
        await pieces?.return();
      },
    },
    { highWaterMark: 0 },
  );
  if (!(Symbol.asyncIterator in stream)) {
    Object.defineProperty(stream, Symbol.asyncIterator, { value: () => iterate(stream) });
  }
  return stream as ByteStream;
}

/** Iterates over a stream. For runtimes whose streams are not async iterable. */
async function* iterate(stream: ReadableStream<Bytes>): AsyncGenerator<Bytes, void, void> {
  const reader = stream.getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      yield value;
    }
  } finally {
    await reader.cancel();
  }
}

/** All bytes of a stream. `size`, if known, saves a copy. */
async function joined(stream: AsyncIterable<Bytes>, size: number | undefined): Promise<Bytes> {
  if (size !== undefined) {
    const whole = new Uint8Array(size);
    let at = 0;
    for await (const piece of stream) {
      whole.set(piece, at);
      at += piece.byteLength;
    }
    // A surrogate pair that was split between two parts counts as two characters.
    return whole.subarray(0, at);
  }
  const pieces: Bytes[] = [];
  let length = 0;
  for await (const piece of stream) {
    pieces.push(piece);
    length += piece.byteLength;
  }
  const whole = new Uint8Array(length);
  let at = 0;
  for (const piece of pieces) {
    whole.set(piece, at);
    at += piece.byteLength;
  }
  return whole;
}

/** Base class of files: three ways to read the same stream. */
export abstract class ReadableFile implements FileContent {
  abstract readonly name: string;
  abstract readonly mediaType: string | undefined;
  abstract readonly size: number | undefined;
  abstract readonly url: string | undefined;
  abstract stream(): ByteStream;

  bytes(): Promise<Bytes> {
    return joined(this.stream(), this.size);
  }

  async text(): Promise<string> {
    return new TextDecoder().decode(await this.bytes());
  }
}

/** The bytes of a file at a URL. */
export async function* fetched(
  url: string,
  name: string,
  fetch: FileFetch | undefined,
  signal?: AbortSignal,
): AsyncGenerator<Bytes, void, void> {
  if (fetch === undefined) {
    const why = `The file ${JSON.stringify(name)} is at a URL: set \`fetch\` to read it`;
    throw new A2AError("UnsupportedOperation", why, { metadata: { url } });
  }
  const response = await fetch(url, signal === undefined ? {} : { signal });
  if (!response.ok) {
    void response.body?.cancel().catch(() => {});
    const why = `The URL of the file ${JSON.stringify(name)} answered with status ${response.status}`;
    throw new A2AError("InvalidResponse", why, { metadata: { url } });
  }
  if (response.body === null) return;
  const reader = (response.body as ReadableStream<Bytes>).getReader();
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      yield value;
    }
  } finally {
    void reader.cancel().catch(() => {});
  }
}

/* Untrusted file names. */

/** Names that Windows reserves for devices, with any extension, also with spaces before it or with superscript digits. */
const reserved = /^(?:con|prn|aux|nul|conin\$|conout\$|com[\d¹²³]|lpt[\d¹²³]) *(?:\.|$)/i;
/** Maximum bytes of a name in UTF-8. Most file systems allow 255; programs may use the rest for a suffix. */
const maxBytes = 200;
const maxOfExtension = 40;

/**
 * Makes an untrusted file name safe: one segment of a path, at most 200 bytes of UTF-8, without control characters and characters that
 * change the direction of text, and neither the name of a hidden file nor one that an operating system reserves. If you join it to a
 * folder, the file is inside that folder.
 *
 * @param otherwise - The name if nothing remains. Default `file`.
 *
 * @example
 * ```ts
 * safeFileName("../../etc/passwd"); // "passwd"
 * ```
 */
export function safeFileName(name: string, otherwise = "file"): string {
  // Only the end of a very long name matters, and normalizing takes time.
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

/** The extension of a file name with its dot, or `""`. */
function extensionIn(name: string): string {
  const dot = name.lastIndexOf(".");
  return dot <= 0 || dot === name.length - 1 ? "" : name.slice(dot);
}

/** Truncates a text between characters. */
function withinBytes(text: string, limit: number): string {
  if (utf8Length(text) <= limit) return text;
  let bytes = 0;
  let kept = "";
  for (const character of text) {
    bytes += utf8Length(character);
    if (bytes > limit) return kept;
    kept += character;
  }
  return kept;
}
