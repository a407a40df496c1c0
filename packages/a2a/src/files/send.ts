import { toBase64 } from "../model/index.ts";
import type { AgentEvent, ByteSource, FileInit, SentFile, TurnFiles } from "../protocol/index.ts";
import { evenPieces, type FilePiece } from "./source.ts";

/** A multiple of three, so that base64 has no padding between the chunks: 256 KiB of base64 each. */
const defaultChunk = 192 << 10;
const maxChunk = 8 << 20;

function chunkSize({ chunkBytes = defaultChunk }: FileInit): number {
  if (Number.isInteger(chunkBytes) && chunkBytes >= 3 && chunkBytes <= maxChunk) return chunkBytes - (chunkBytes % 3);
  throw new RangeError(`turn.file(): chunkBytes must be an integer from 3 to ${maxChunk}`);
}

/**
 * The bytes of a source as one artifact in chunks. Each chunk is a part with the name and the type of the file, so that a reader who
 * knows only its latest chunk knows what it is of.
 */
export async function* sendFile(
  source: ByteSource,
  artifactId: string,
  init: FileInit,
  signal: AbortSignal,
  outside?: TurnFiles,
): AsyncGenerator<AgentEvent, SentFile, void> {
  const { name, description, metadata } = init;
  if (typeof name !== "string" || name === "") throw new TypeError("turn.file(): a file needs a name");
  const mediaType = init.mediaType ?? typeOf(source);
  const head = {
    artifactId,
    name,
    ...(description === undefined ? {} : { description }),
    ...(metadata === undefined ? {} : { metadata }),
  };
  const about = { filename: name, ...(mediaType === undefined ? {} : { mediaType }) };
  const all = evenPieces(source, chunkSize(init), signal);
  let pieces: Pieces | FilePiece[] = all;
  if (outside !== undefined) {
    const { begun, rest } = await beginning(all, outside.inlineBytes);
    if (rest !== undefined) {
      const { url, size } = await outside.store(bytesOf(begun, rest), about);
      yield { kind: "artifact", artifact: { ...head, parts: [{ ...about, url }] }, lastChunk: true };
      return { artifactId, bytes: size };
    }
    pieces = begun;
  }
  let size = 0;
  for await (const { bytes, last } of pieces) {
    const parts = [{ raw: toBase64(bytes), ...about }];
    yield {
      kind: "artifact",
      artifact: size === 0 ? { ...head, parts } : { artifactId, parts },
      ...(size === 0 ? {} : { append: true }),
      ...(last ? { lastChunk: true } : {}),
    };
    size += bytes.byteLength;
  }
  return { artifactId, bytes: size };
}

type Pieces = AsyncGenerator<FilePiece, void, void>;

/** The first pieces of a file, as many as stay in the task, and the rest of one that does not. */
async function beginning(
  pieces: Pieces,
  most: number,
): Promise<{ readonly begun: FilePiece[]; readonly rest: Pieces | undefined }> {
  const begun: FilePiece[] = [];
  for (let size = 0; ;) {
    const next = await pieces.next();
    if (next.done === true) return { begun, rest: undefined };
    // The source writes its next piece where this one is.
    begun.push({ ...next.value, bytes: next.value.bytes.slice() });
    size += next.value.bytes.byteLength;
    if (size > most) return { begun, rest: pieces };
  }
}

async function* bytesOf(begun: FilePiece[], rest: Pieces): AsyncGenerator<Uint8Array, void, void> {
  try {
    for (const { bytes } of begun.splice(0)) yield bytes;
    // A store may keep what it gets until it has enough of it.
    for await (const { bytes } of rest) yield bytes.slice();
  } finally {
    await rest.return();
  }
}

function typeOf(source: ByteSource): string | undefined {
  return source instanceof Blob && source.type !== "" ? source.type : undefined;
}
