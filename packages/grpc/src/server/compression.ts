import { promisify } from "node:util";
import { gunzip, gzip } from "node:zlib";
import { A2AError } from "@parley/a2a";
import { compressed, frameOf, FrameReader, type Frame } from "../frames.ts";
import { StatusError } from "./status-error.ts";

const inflate = promisify(gunzip);
const deflate = promisify(gzip);

/** What we read, as `grpc-accept-encoding` says it. */
export const encodings = "gzip,identity";

/** Smaller messages are larger compressed, or not worth the work. */
const worthwhile = 1024;

/**
 * The message in a frame. Work for another thread where it is compressed, so never done for others.
 *
 * @throws A2AError `RequestTooLarge` for one that unfolds to more than `limit` bytes.
 */
export function messageIn(
  { flags, payload }: Frame,
  encoding: string | undefined,
  limit: number,
): Uint8Array | Promise<Uint8Array> {
  if (flags === 0) return payload;
  if (flags !== compressed) throw new A2AError("InvalidRequest", "A frame has flags that nobody knows");
  if (encoding === "gzip") return unfold(payload, limit);
  if (encoding === undefined || encoding === "identity") {
    throw new StatusError("INTERNAL", "A message is compressed and grpc-encoding does not say how");
  }
  throw new StatusError("UNIMPLEMENTED", `Messages compressed by ${encoding} cannot be read here`, {
    "grpc-accept-encoding": encodings,
  });
}

async function unfold(payload: Uint8Array, limit: number): Promise<Uint8Array> {
  try {
    return await inflate(payload, { maxOutputLength: limit });
  } catch (cause) {
    if ((cause as { code?: unknown }).code === "ERR_BUFFER_TOO_LARGE") {
      throw new A2AError("RequestTooLarge", `Message larger than ${limit} bytes`, { cause });
    }
    throw new A2AError("ParseError", "A message is no gzip, which it is said to be", { cause });
  }
}

async function compressedFrame(message: Uint8Array): Promise<Uint8Array> {
  return message.length < worthwhile ? frameOf(message) : frameOf(await deflate(message), compressed);
}

/** Frames with the large ones among their messages compressed. */
export async function compressFrames(frames: Uint8Array): Promise<Uint8Array> {
  const plain = new FrameReader(frames.length).push(frames);
  return Buffer.concat(await Promise.all(plain.map(({ payload }) => compressedFrame(payload))));
}
