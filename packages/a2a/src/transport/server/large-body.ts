import { A2AError } from "../../model/index.ts";
import {
  GrowingBytes,
  smallBody,
  type FileReceiver,
  type FileSender,
  type IncomingFiles,
  type UniversalRequest,
} from "../../protocol/index.ts";
import type { RequestLimits } from "./binding.ts";
import { BodyPieces } from "./body-pieces.ts";
import { fileLimits } from "./file-limits.ts";
import { JsonFiles } from "./json-files.ts";

/* Bodies of messages that are too large to be in memory. */

/**
 * The text of a body, with what stands for each large file in the place of its base64. `call.files` has the files.
 *
 * @param most - A body of at most so many bytes is not looked into.
 */
export async function readLargeText(
  call: { readonly request: UniversalRequest; files?: IncomingFiles },
  receiver: FileReceiver,
  limits: RequestLimits,
  sender: FileSender,
  most: number,
): Promise<string> {
  const { request } = call;
  const source = new BodyPieces();
  try {
    const enter = (): void => void (source.place = limits.unfinished?.enter(source, request.connection));
    if (sender.bytes === undefined) {
      enter();
      const flow = request.read?.(source);
      if (flow !== undefined) source.from(flow);
      const whole = await beginning(source, most);
      if (whole !== undefined) return textOf(whole);
      // Its place counts what has come, also while there is no room for the rest.
      const opening = receiver.open(sender);
      try {
        call.files = await source.unlessRefused(opening);
      } catch (error) {
        opening.then((files) => files.close()).catch(() => {});
        throw error;
      }
      await call.files.came(source.again);
    } else {
      // Nothing is read before there is room.
      call.files = await receiver.open(sender);
      enter();
      const flow = request.read?.(source);
      if (flow !== undefined) source.from(flow);
    }
    const { files } = call;
    source.onBytes = (bytes) => files.came(bytes);
    files.watch(source);
    const { inlineBytes, ...given } = fileLimits(receiver, limits);
    const json = new JsonFiles(source, { files, inlineLength: 4 * Math.ceil(inlineBytes / 3), ...given });
    return textOf(await json.read());
  } finally {
    source.close();
  }
}

/** The body; `undefined` where it has more than `most` bytes: it is read again from its beginning on. */
async function beginning(source: BodyPieces, most: number): Promise<Uint8Array | undefined> {
  const bytes = new GrowingBytes(most);
  for (;;) {
    const piece = await source.next();
    if (piece === undefined) return bytes.view();
    if (bytes.length + piece.length > most) {
      source.restart(bytes.view(), piece);
      return undefined;
    }
    bytes.append(piece);
    const { capacity } = bytes;
    await source.hold(capacity, bytes.length > smallBody ? Math.max(capacity, most) : capacity);
  }
}

function textOf(bytes: Uint8Array): string {
  // The decoder removes a byte order mark, which is not part of JSON text (RFC 8259 §8.1).
  const decoder = new TextDecoder("utf-8", { fatal: true });
  try {
    return decoder.decode(bytes);
  } catch {
    throw new A2AError("ParseError", "Request body is not UTF-8");
  }
}
