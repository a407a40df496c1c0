import type { BodyWriter, OperationName, StreamItem, StreamReply } from "../../protocol/index.ts";
import type { Binding } from "../server/binding.ts";
import { failureOf, type Headers, type WireError } from "../server/response.ts";
import { caughtUp } from "./keep-alive.ts";

/** Headers of an event stream; the last one keeps nginx from holding events back. */
export const streamHeaders: Headers = {
  "content-type": "text/event-stream",
  "cache-control": "no-store",
  "x-accel-buffering": "no",
};

/** How a binding puts events on the wire. */
export interface EventFormat {
  /** The `data` of an event: one line. */
  event(item: StreamItem): string;
  /** The whole event that ends a stream which broke, without its closing blank line. */
  error(error: WireError): string;
}

function eventText(item: StreamItem, format: EventFormat): string {
  const data = `data: ${format.event(item)}\n\n`;
  return item.seq === undefined ? data : `id: ${item.seq}\n${data}`;
}

/**
 * Writes a stream as server-sent events: a comment at once, so that the headers go out with the acceptance and not with
 * the first event; then one write a batch, none while the peer is behind (D10). When the peer goes, the source is let
 * go of at once.
 */
export function writeEvents(
  batches: StreamReply["batches"],
  format: EventFormat,
  { keepAlive, logger }: Pick<Binding, "keepAlive" | "logger">,
  operation: OperationName,
): BodyWriter {
  return async (sink) => {
    const source = batches[Symbol.asyncIterator]();
    const letGo = async () => void (await source.return?.());
    const { beat, remove } = keepAlive.add(sink);
    sink.onClose(() => {
      remove();
      letGo().catch(() => undefined);
    });
    try {
      if (!sink.write(":\n\n")) await caughtUp(beat);
      while (!sink.closed) {
        const next = await source.next();
        if (next.done === true) break;
        let text = "";
        for (const item of next.value) text += eventText(item, format);
        if (!sink.write(text)) await caughtUp(beat);
      }
    } catch (thrown) {
      const error = failureOf(thrown, logger, { operation });
      if (!sink.closed) sink.write(`${format.error(error)}\n\n`);
    } finally {
      remove();
    }
  };
}

/** Lets go of a stream that nobody is going to read. */
export async function discard(batches: StreamReply["batches"]): Promise<void> {
  await batches[Symbol.asyncIterator]().return?.();
}
