import type { StreamItem, StreamReply } from "./service.ts";

/**
 * The batches of a stream with each item changed, for interceptors. Closing it closes the stream at once, also while a read
 * waits for an event. A generator would close the stream only after the next event.
 *
 * @param change - Returns the changed item, or `undefined` to leave it out. An error that it throws ends the stream.
 *
 * @example
 * ```ts
 * const reply = await next.stream(operation, request, context);
 * const hide = (item: StreamItem) => ({ ...item, payload: item.payload.map(redact) });
 * return { ...reply, batches: mapItems(reply.batches, hide) };
 * ```
 */
export function mapItems(
  batches: StreamReply["batches"],
  change: (item: StreamItem) => StreamItem | undefined,
): StreamReply["batches"] {
  return {
    [Symbol.asyncIterator]() {
      const source = batches[Symbol.asyncIterator]();
      const leave = async (): Promise<IteratorReturnResult<undefined>> => {
        await source.return?.();
        return { done: true, value: undefined };
      };
      return {
        async next() {
          for (;;) {
            const result = await source.next();
            if (result.done === true) return result;
            const value = await changed(result.value, change, leave);
            if (value.length > 0) return { done: false, value };
          }
        },
        return: leave,
      };
    },
  };
}

async function changed(
  batch: readonly StreamItem[],
  change: (item: StreamItem) => StreamItem | undefined,
  leave: () => Promise<unknown>,
): Promise<readonly StreamItem[]> {
  try {
    return batch.map(change).filter((item) => item !== undefined);
  } catch (thrown) {
    await leave();
    throw thrown;
  }
}
