import { toBase64 } from "../model/index.ts";
import type { AgentEvent, ByteSource, FileInit, SentFile } from "../protocol/index.ts";
import { evenPieces } from "./source.ts";

/** A multiple of three, so that base64 has no padding between the chunks: 256 KiB of base64 each. */
const defaultChunk = 192 << 10;
const mostChunk = 8 << 20;

function chunkSize({ chunkBytes = defaultChunk }: FileInit): number {
  if (Number.isInteger(chunkBytes) && chunkBytes >= 3 && chunkBytes <= mostChunk) return chunkBytes - (chunkBytes % 3);
  throw new RangeError(`turn.file(): chunkBytes must be an integer from 3 to ${mostChunk}`);
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
  let size = 0;
  for await (const { bytes, last } of evenPieces(source, chunkSize(init), signal)) {
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

function typeOf(source: ByteSource): string | undefined {
  return source instanceof Blob && source.type !== "" ? source.type : undefined;
}
