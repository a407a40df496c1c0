import type { StreamItem } from "../../protocol/index.ts";

type Batches = AsyncIterable<readonly StreamItem[]>;

/** The same batches, and `done` when they are over or let go of, begun or not; `letGo` in the latter case alone. */
export function finishing(source: Batches, done: () => void, letGo?: () => unknown): Batches {
  return {
    [Symbol.asyncIterator]() {
      const batches = source[Symbol.asyncIterator]();
      return {
        async next() {
          try {
            const result = await batches.next();
            if (result.done === true) done();
            return result;
          } catch (thrown) {
            done();
            throw thrown;
          }
        },
        async return() {
          done();
          await letGo?.();
          await batches.return?.();
          return { done: true, value: undefined };
        },
      };
    },
  };
}
