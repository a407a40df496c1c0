import { setImmediate as turnOfTheLoop } from "node:timers/promises";
import {
  mapItems,
  Payload,
  type AgentService,
  type Interceptor,
  type OperationName,
  type Reply,
  type StreamItem,
  type StreamReply,
} from "@parley/a2a/protocol";

/** Interceptors that change the form of calls and responses, each in a different way, but not the meaning. */

interface Changes {
  /** Called before the call continues. */
  readonly before?: (operation: OperationName) => Promise<void> | void;
  readonly reply?: <T>(reply: Reply<T>) => Reply<T>;
  readonly stream?: (reply: StreamReply) => StreamReply;
}

export function changing({ before, reply = (each) => each, stream = (each) => each }: Changes): Interceptor {
  return (next): AgentService => ({
    async call(operation, request, context) {
      await before?.(operation);
      return reply(await next.call(operation, { ...request }, { ...context }));
    },
    async stream(operation, request, context) {
      await before?.(operation);
      return stream(await next.stream(operation, { ...request }, { ...context }));
    },
  });
}

/** Copies the response member by member. */
const spreading: Interceptor = changing({
  reply: (reply) => ({ ...reply }),
  stream: (reply) => ({ ...reply, batches: mapItems(reply.batches, (item) => ({ ...item })) }),
});

/** Replaces the payload with another payload of equal value. */
const replacing: Interceptor = changing({
  reply: (reply) => ({ ...reply, payload: new Payload(structuredClone(reply.payload.value)) }),
  stream: (reply) => ({
    ...reply,
    batches: mapItems(reply.batches, (item) => ({ ...item, payload: item.payload.map((event) => ({ ...event })) })),
  }),
});

/** Waits for a turn of the event loop before the call and before each batch. */
const delaying: Interceptor = changing({
  before: () => turnOfTheLoop(),
  stream: (reply) => ({
    ...reply,
    batches: {
      [Symbol.asyncIterator]() {
        const source = reply.batches[Symbol.asyncIterator]();
        return {
          async next() {
            await turnOfTheLoop();
            return source.next();
          },
          return: async () => (await source.return?.()) ?? { done: true, value: undefined },
        };
      },
    },
  }),
});

/** Creates an interceptor that puts each item into its own batch, and counts calls and items. */
export function counting(): { readonly interceptor: Interceptor; readonly counts: Map<string, number> } {
  const counts = new Map<string, number>();
  const count = (what: string): void => void counts.set(what, (counts.get(what) ?? 0) + 1);
  async function* one(batches: StreamReply["batches"]): AsyncGenerator<readonly StreamItem[], void, void> {
    for await (const batch of batches) {
      for (const item of batch) {
        count("items");
        yield [item];
      }
    }
  }
  const interceptor = changing({
    before: count,
    stream: (reply) => ({ ...reply, batches: one(reply.batches) }),
  });
  return { interceptor, counts };
}

/** Returns all of these interceptors, nested. */
export function transparent(): readonly Interceptor[] {
  return [spreading, counting().interceptor, replacing, delaying, spreading];
}
