import { toA2AError } from "../model/index.ts";
import type { Interceptor } from "./intercept.ts";
import { endedBy, type Ended, type Observer } from "./observer.ts";
import type { OperationName } from "./operations.ts";
import type { CallContext, StreamReply } from "./service.ts";

/** Reports each call of a service. `begin` is told when one begins. */
function observing(begin: (operation: OperationName, context: CallContext) => Ended | undefined | void): Interceptor {
  return (next) => ({
    call: (operation, request, context) => endedBy(begin(operation, context), next.call(operation, request, context)),
    async stream(operation, request, context) {
      const ended = begin(operation, context);
      if (typeof ended !== "function") return next.stream(operation, request, context);
      try {
        const reply = await next.stream(operation, request, context);
        return { ...reply, batches: endedStream(reply.batches, ended) };
      } catch (thrown) {
        ended(toA2AError(thrown));
        throw thrown;
      }
    },
  });
}

/** The same batches. Tells once when they are over: at their end, with an error, or when their reader leaves. */
function endedStream(batches: StreamReply["batches"], tell: Ended): StreamReply["batches"] {
  let told = false;
  const ended: Ended = (error) => {
    if (!told) tell(error);
    told = true;
  };
  return {
    [Symbol.asyncIterator]() {
      const source = batches[Symbol.asyncIterator]();
      return {
        async next() {
          try {
            const result = await source.next();
            if (result.done === true) ended();
            return result;
          } catch (thrown) {
            ended(toA2AError(thrown));
            throw thrown;
          }
        },
        async return() {
          ended();
          await source.return?.();
          return { done: true, value: undefined };
        },
      };
    },
  };
}

/** Reports the calls of an agent's service to `observer.call`. `agent`: the agent's id. */
export function observeCalls(observer: Observer, agent: string): Interceptor {
  return observing((operation, { principal, version, trace }) =>
    observer.call?.({ operation, agent, principal, version, trace }),
  );
}

/**
 * An interceptor for clients: reports each request that goes to the agent, over whatever binding, to `observer.request`. A
 * repeated request is reported once for each try. Requests for the card are not.
 *
 * @example
 * ```ts
 * const observer: Observer = { request: ({ operation }) => console.log(operation) };
 * const client = await connect("http://localhost:4000", { interceptors: [observeRequests(observer)] });
 * ```
 */
export function observeRequests(observer: Observer): Interceptor {
  return observing((operation, { version, trace }) => observer.request?.({ operation, version, trace }));
}
