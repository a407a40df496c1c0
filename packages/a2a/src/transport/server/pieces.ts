import type { BodyWriter, Sink } from "../../protocol/index.ts";
import type { ServerContext } from "./request.ts";

/** Characters of one write: what a host holds of an answer beside its text. */
const pieceLength = 1 << 16;

/** The body of an answer: as it is where it is small, and else in pieces that wait until there is room for them. */
export function bodyOf(text: string | readonly string[], context: ServerContext): string | BodyWriter {
  if (typeof text !== "string") return writePieces(text, context);
  if (context.reserved === 0) return text;
  // What it was made from is gone, and it may be less than was thought.
  context.shrink(2 * text.length);
  if (text.length > pieceLength) return writePieces([text], context);
  context.end();
  return text;
}

/** A body that is large. Its room is given back when it is out, or its reader gone. */
function writePieces(pieces: readonly string[], context: ServerContext): BodyWriter {
  return async (sink) => {
    try {
      for (const piece of pieces) {
        const written = writeText(sink, piece, context);
        if (written !== undefined) await written;
      }
    } finally {
      context.end();
    }
  };
}

/** Writes a text; a promise where the peer has to catch up. */
export function writeText(sink: Sink, text: string, context: ServerContext): Promise<void> | undefined {
  if (text.length > pieceLength) return writeLong(sink, text, context);
  return sink.closed || sink.write(text) ? undefined : context.awaitReader(sink.ready());
}

async function writeLong(sink: Sink, text: string, context: ServerContext): Promise<void> {
  for (let at = 0; at < text.length && !sink.closed;) {
    let end = at + pieceLength;
    // The halves of a character stay together.
    if (isHighSurrogate(text.charCodeAt(end - 1))) end += 1;
    if (!sink.write(text.slice(at, end))) await context.awaitReader(sink.ready());
    at = end;
  }
}

function isHighSurrogate(code: number): boolean {
  return code >= 0xd800 && code <= 0xdbff;
}
