import type { Clock, Logger } from "../../base/index.ts";
import type { BodyWriter, InlineFiles, OperationName, Sink, StreamItem, StreamReply } from "../../protocol/index.ts";
import type { ServerContext } from "./context.ts";
import { failureOf, writeWithFiles, type Headers, type WireError } from "./response.ts";

/* Writes server-sent events (HTML Living Standard §9.2). */

/** Headers of an event stream. `x-accel-buffering` stops nginx from buffering events. */
export const streamHeaders: Headers = {
  "content-type": "text/event-stream",
  "cache-control": "no-store",
  "x-accel-buffering": "no",
};

/** A comment and a blank line. Readers do not report it as an event, because no `id` precedes it. */
const opening = ":\n\n";

/** The event format of a binding. */
export interface EventFormat {
  /** The `data` of an event, as one line. */
  event(item: StreamItem): string;
  /** The text of a large event, in pieces that need not be joined; `undefined` to use `event`. */
  pieces(item: StreamItem): readonly string[] | undefined;
  /** The last event of a stream that fails, without the blank line at its end. */
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
 * Writes a stream as server-sent events, each batch as one write. A first comment sends the headers immediately. Writing pauses while the
 * client is slow. When the client disconnects, the source is closed.
 */
export function writeEvents(
  batches: StreamReply["batches"],
  format: EventFormat,
  { keepAlive, logger }: { readonly keepAlive: KeepAlive; readonly logger: Logger },
  context: ServerContext,
  operation: OperationName,
  inline?: InlineFiles,
): BodyWriter {
  return async (sink) => {
    const source = batches[Symbol.asyncIterator]();
    const beat = keepAlive.add(sink);
    sink.onClose(() => {
      keepAlive.remove(beat);
      close(source).catch(() => undefined);
    });
    try {
      if (!sink.write(opening)) await caughtUp(beat);
      let next: IteratorResult<readonly StreamItem[]> | undefined;
      while (!sink.closed) {
        next = await source.next();
        if (next.done === true) break;
        const large = inline !== undefined || context.reserved > 0 || next.value[0]?.payload.pieces !== undefined;
        if (large) await writeLarge(sink, beat, next.value, format, context, inline);
        const taken = large || sink.write(batchText(next.value, format));
        // Cleared, because otherwise each stream that waits here would keep its last events in memory.
        next = undefined;
        if (!taken) await caughtUp(beat);
        if (large) context.release();
      }
    } catch (thrown) {
      // The event is incomplete, so the host resets the connection, and the client requests this event again.
      if (thrown instanceof BrokenEvent) throw thrown.cause;
      const error = failureOf(thrown, logger, { operation, ...context.fields }, () => sink.closed);
      if (!sink.closed) sink.write(`${format.error(error)}\n\n`);
    } finally {
      keepAlive.remove(beat);
      context.end();
    }
  };
}

/** Writes a batch with a large event, such as the task at the beginning, in pieces, without keep-alive comments between them. */
async function writeLarge(
  sink: Sink,
  beat: Beat,
  batch: readonly StreamItem[],
  format: EventFormat,
  context: ServerContext,
  inline: InlineFiles | undefined,
): Promise<void> {
  beat.behind = true;
  for (const item of batch) {
    const pieces = format.pieces(item);
    const id = item.seq === undefined ? "" : `id: ${item.seq}\n`;
    const texts = pieces === undefined ? [eventText(item, format)] : [`${id}data: `, ...pieces, "\n\n"];
    try {
      for (const text of texts) await writeWithFiles(sink, text, context, inline);
    } catch (cause) {
      throw new BrokenEvent("Failed to write an event completely", { cause });
    }
  }
  beat.behind = false;
}

/** Thrown if an event fails after a part of it was written. */
class BrokenEvent extends Error {}

/** Closes a stream without a reader. */
export async function discard(batches: StreamReply["batches"]): Promise<void> {
  await close(batches[Symbol.asyncIterator]());
}

async function close(source: AsyncIterator<unknown>): Promise<void> {
  await source.return?.();
}

/** A stream that gets keep-alive comments. */
interface Beat {
  readonly sink: Sink;
  /** The slot of the stream on the wheel of `KeepAlive`. */
  readonly slot: number;
  /** Whether the client is too slow now, so that comments would only pile up. */
  behind: boolean;
}

const slots = 16;

/**
 * A comment without a blank line, so that it belongs to the next event (HTML Living Standard §9.2.6). After a blank line, `httpx-sse` of the
 * Python SDK of 0.3 would report an event with the last `id` and without data.
 */
const comment = ":\n";

/**
 * Sends a comment to every open stream once per interval, so that proxies do not close the stream. This is a timer wheel, so each tick
 * writes to one slot, not to ten thousand streams at once.
 */
export class KeepAlive {
  readonly #clock: Clock;
  readonly #step: number;
  readonly #wheel: readonly Set<Beat>[] = Array.from({ length: slots }, () => new Set<Beat>());
  #size = 0;
  #next = 0;
  #turning = false;

  /** `interval` is the number of milliseconds between two comments to one stream. */
  constructor(clock: Clock, interval: number) {
    this.#clock = clock;
    this.#step = interval / slots;
  }

  /** Number of streams that get comments. */
  get size(): number {
    return this.#size;
  }

  /** Starts to send comments to a stream. */
  add(sink: Sink): Beat {
    const beat: Beat = { sink, slot: (this.#next + this.#size) % slots, behind: false };
    this.#slot(beat.slot).add(beat);
    this.#size++;
    this.#turn();
    return beat;
  }

  /** Stops sending comments to a stream. */
  remove(beat: Beat): void {
    if (this.#slot(beat.slot).delete(beat)) this.#size--;
  }

  #slot(index: number): Set<Beat> {
    return this.#wheel[index] as Set<Beat>;
  }

  #turn(): void {
    if (this.#turning || this.#size === 0) return;
    this.#turning = true;
    this.#clock.after(this.#step, () => {
      this.#turning = false;
      for (const beat of this.#slot(this.#next)) {
        if (!beat.behind && !beat.sink.closed && !beat.sink.write(comment)) void caughtUp(beat);
      }
      this.#next = (this.#next + 1) % slots;
      this.#turn();
    });
  }
}

/** Waits until the client takes data again. Until then the stream gets no comments. */
async function caughtUp(beat: Beat): Promise<void> {
  beat.behind = true;
  await beat.sink.ready();
  beat.behind = false;
}
