import { utf8Length, type Bytes } from "../base/index.ts";
import type { Part } from "../model/index.ts";
import type { ByteStream, FileContent, FilesOptions, TurnFiles } from "../protocol/index.ts";
import {
  continues,
  decoded,
  fetched,
  fileName,
  jsonFile,
  ReadableFile,
  sizeOfBase64,
  streamOf,
  TextPieces,
} from "./content.ts";

/** The files of a message: its parts with bytes or a URL, and other parts with a file name. */
export function receivedFiles(
  parts: readonly Part[],
  { fetch }: FilesOptions = {},
  signal?: () => AbortSignal,
  outside?: TurnFiles,
): readonly FileContent[] {
  const files: Part[][] = [];
  let before: Part | undefined;
  for (const part of parts) {
    const isFile = part.raw !== undefined || part.url !== undefined || (part.filename ?? "") !== "";
    if (isFile && before !== undefined && continues(before, part)) files.at(-1)?.push(part);
    else if (isFile) files.push([part]);
    before = isFile ? part : undefined;
  }
  return files.map((pieces) => new PartFile(pieces, { ...(fetch && { fetch }) }, signal, outside));
}

type BytesRead = AsyncGenerator<Bytes, void, void>;

class PartFile extends ReadableFile {
  readonly #parts: readonly Part[];
  readonly #options: FilesOptions;
  readonly #signal: (() => AbortSignal) | undefined;
  /** The stored bytes, if the server has stored the file outside the message. */
  readonly #outside: ReturnType<TurnFiles["open"]>;

  constructor(
    parts: readonly Part[],
    options: FilesOptions,
    signal: (() => AbortSignal) | undefined,
    outside: TurnFiles | undefined,
  ) {
    super();
    const [{ url } = {}] = parts;
    this.#outside = url === undefined ? undefined : outside?.open(url);
    this.#parts = parts;
    this.#options = options;
    this.#signal = signal;
  }

  get name(): string {
    return fileName(this.#first, "file");
  }

  get mediaType(): string | undefined {
    return this.#first.mediaType;
  }

  get size(): number | undefined {
    if (this.#outside !== undefined) return this.#outside.size;
    let size = 0;
    for (const { raw, text } of this.#parts) {
      if (raw !== undefined) size += sizeOfBase64(raw);
      else if (text !== undefined) size += utf8Length(text);
      else return undefined;
    }
    return size;
  }

  get url(): string | undefined {
    return this.#outside === undefined ? this.#first.url : undefined;
  }

  stream(): ByteStream {
    const { url, data } = this.#first;
    const outside = this.#outside;
    if (outside !== undefined) return streamOf(() => outside.bytes()[Symbol.asyncIterator]() as BytesRead);
    if (url !== undefined) return streamOf(() => fetched(url, this.name, this.#options.fetch, this.#signal?.()));
    if (data !== undefined) return streamOf(() => one(jsonFile(data)));
    return streamOf(() => this.#pieces());
  }

  get #first(): Part {
    return this.#parts[0] as Part;
  }

  *#pieces(): Generator<Bytes, void, void> {
    const texts = new TextPieces();
    for (const { raw, text } of this.#parts) {
      if (raw !== undefined) yield* decoded(raw);
      else if (text !== undefined) yield* texts.push(text);
    }
    const rest = texts.end();
    if (rest.byteLength > 0) yield rest;
  }
}

function* one(bytes: Bytes): Generator<Bytes, void, void> {
  yield bytes;
}
