import type { BodyWriter, OperationName, Sink, StreamItem, StreamReply } from "../../protocol/index.ts";
import type { ServerHost } from "../server/host.ts";
import { writeText } from "../server/pieces.ts";
import type { ServerContext } from "../server/request.ts";
import { failureOf, type Headers, type WireError } from "../server/response.ts";
import { caughtUp, type Beat } from "../server/keep-alive.ts";

/** Headers of an event stream; the last one keeps nginx from holding events back. */
export const streamHeaders: Headers = {
  "content-type": "text/event-stream",
  "cache-control": "no-store",
  "x-accel-buffering": "no",
};

/** A comment with a blank line, which no reader takes for an event as long as there was no `id`. */
const opening = ":\n\n";

/** How a binding puts events on the wire. */
export interface EventFormat {
  /** The `data` of an event: one line. */
  event(item: StreamItem): string;
  /** The same of a large event, where it need not be joined. */
  pieces(item: StreamItem): readonly string[] | undefined;
  /** The whole event that ends a stream which broke, without its closing blank line. */
  error(error: WireError): string;
}

function eventText(item: StreamItem, format: EventFormat): string {
  const data = `data: ${format.event(item)}\n\n`;
  return item.seq === undefined ? data : `id: ${item.seq}\n${data}`;
}

function batchText(batch: readonly StreamItem[], format: EventFormat): string {
  let text = "";
  for (const item of batch) text += eventText(item, format);
  return text;
}

/**
 * Writes a stream as server-sent events: a comment at once, so that the headers go out with the acceptance and not with
 * the first event; then one write a batch, none while the peer is behind. When the peer goes, the source is let
 * go of at once.
 */
export function writeEvents(
  batches: StreamReply["batches"],
  format: EventFormat,
  { keepAlive, logger }: Pick<ServerHost, "keepAlive" | "logger">,
  context: ServerContext,
  operation: OperationName,
): BodyWriter {
  return async (sink) => {
    const source = batches[Symbol.asyncIterator]();
    const beat = keepAlive.add(sink);
    sink.onClose(() => {
      keepAlive.remove(beat);
      discardFrom(source).catch(() => undefined);
    });
    try {
      if (!sink.write(opening)) await caughtUp(beat);
      let next: IteratorResult<readonly StreamItem[]> | undefined;
      while (!sink.closed) {
        next = await source.next();
        if (next.done === true) break;
        const large = context.reserved > 0 || next.value[0]?.payload.pieces !== undefined;
        if (large) await writeLarge(sink, beat, next.value, format, context);
        const taken = large || sink.write(batchText(next.value, format));
        // A writer that waits holds on to what its variables hold: the last events, once for each idle stream.
        next = undefined;
        if (!taken) await caughtUp(beat);
        if (large) context.release();
      }
    } catch (thrown) {
      const error = failureOf(thrown, logger, { operation }, () => sink.closed);
      if (!sink.closed) sink.write(`${format.error(error)}\n\n`);
    } finally {
      keepAlive.remove(beat);
      context.end();
    }
  };
}

/** A batch with a large event, such as the task as it stood: in pieces, and no comment within one. */
async function writeLarge(
  sink: Sink,
  beat: Beat,
  batch: readonly StreamItem[],
  format: EventFormat,
  context: ServerContext,
): Promise<void> {
  beat.behind = true;
  for (const item of batch) {
    const pieces = format.pieces(item);
    const id = item.seq === undefined ? "" : `id: ${item.seq}\n`;
    const texts = pieces === undefined ? [eventText(item, format)] : [`${id}data: `, ...pieces, "\n\n"];
    for (const text of texts) await writeText(sink, text, context);
  }
  beat.behind = false;
}

/** Lets go of a stream that nobody is going to read. */
export async function discard(batches: StreamReply["batches"]): Promise<void> {
  await discardFrom(batches[Symbol.asyncIterator]());
}

async function discardFrom(source: AsyncIterator<unknown>): Promise<void> {
  await source.return?.();
}
