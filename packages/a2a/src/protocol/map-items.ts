import type { StreamItem, StreamReply } from "./service.ts";

/**
 * The batches of a stream with each item changed, for interceptors. A reader that leaves reaches the stream at once, even
 * while it waits for an event; a generator would hold it back until the next one.
 *
 * @param change - Gives the item as it is to go on; `undefined` leaves it out. What it throws ends the stream.
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
