import type { BodyWriter } from "../../protocol/index.ts";

/** A body that is large: each piece waits until there is room for it, so that the host holds few of them. */
export function writePieces(pieces: readonly string[]): BodyWriter {
  return async (sink) => {
    for (const piece of pieces) {
      if (sink.closed) return;
      if (!sink.write(piece)) await sink.ready();
    }
  };
}
