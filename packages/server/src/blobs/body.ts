import type { Bytes } from "@parley/a2a/internal/base/index";
import { toA2AError } from "@parley/a2a/internal/model/index";

/**
 * The bytes of a stream, without the first `skip`. `return()` of the iterator cancels the stream also where nothing was read of it, which
 * that of a generator would not.
 */
export function bodyOf(
  stream: ReadableStream<Bytes> | null,
  skip: number,
  failure: (thrown: unknown) => Error = toA2AError,
): AsyncIterable<Bytes> {
  return {
    [Symbol.asyncIterator]() {
      const reader = stream?.getReader();
      let left = skip;
      return {
        async next(): Promise<IteratorResult<Bytes, undefined>> {
          for (;;) {
            const result = await reader?.read().catch((thrown: unknown) => {
              throw failure(thrown);
            });
            if (result === undefined || result.done) return { done: true, value: undefined };
            const piece = left === 0 ? result.value : result.value.subarray(left);
            left = Math.max(0, left - result.value.length);
            if (piece.length > 0) return { done: false, value: piece as Bytes };
          }
        },
        async return(): Promise<IteratorResult<Bytes, undefined>> {
          await reader?.cancel().catch(() => {});
          return { done: true, value: undefined };
        },
      };
    },
  };
}
