import { A2AError, invalidParams } from "../model/index.ts";
import type { OperationName, StreamName, UnaryName } from "./operations.ts";
import { Payload } from "./payload.ts";
import type { AgentService, CallContext, Reply, StreamItem, StreamReply } from "./service.ts";
import { TextPayload } from "./text-payload.ts";

/**
 * Wraps a service in another one: for logging, limits, authorization. It returns a service that answers every call, most of
 * them with the answer of `next`.
 *
 * @example
 * ```ts
 * const log: Interceptor = (next) => ({
 *   call(operation, request, context) {
 *     console.log(operation, context.principal.subject);
 *     return next.call(operation, request, context);
 *   },
 *   stream: (operation, request, context) => next.stream(operation, request, context),
 * });
 * ```
 */
export type Interceptor = (next: AgentService) => AgentService;

type Batch = readonly StreamItem[];

/**
 * A service behind interceptors. The first of them is the outermost: it sees a request first and an answer last.
 *
 * What an interceptor returns is checked. Where it is no answer, the caller gets an `InternalError`, whose `cause` names
 * the interceptor for the operator. Answers that come from `service` are made of text, so their values are frozen.
 *
 * @throws A2AError `InvalidParams` when an interceptor is no function, or returns no service.
 */
export function intercept(service: AgentService, interceptors: readonly Interceptor[]): AgentService {
  if (interceptors.length === 0) return service;
  const sound = new WeakSet<StreamReply["batches"]>();
  const outermost = interceptors.reduceRight<AgentService>(
    (next, interceptor, at) => checked(wrap(interceptor, next, at), nameOf(interceptor, at), sound),
    separated(service, sound),
  );
  return {
    call: (operation, request, context) => outermost.call(operation, request, spreadable(context)),
    stream: (operation, request, context) => outermost.stream(operation, request, spreadable(context)),
  };
}

function wrap(interceptor: Interceptor, next: AgentService, at: number): AgentService {
  const made: unknown = typeof interceptor === "function" ? interceptor(next) : undefined;
  if (isObject(made) && typeof made["call"] === "function" && typeof made["stream"] === "function") {
    return made as unknown as AgentService;
  }
  const description = "must be a function from a service to a service, which has `call` and `stream`";
  throw invalidParams([{ field: `interceptors[${at}]`, description }], `interceptors[${at}] ${description}`);
}

function nameOf({ name }: Interceptor, at: number): string {
  return name === "" ? `interceptors[${at}]` : `interceptors[${at}] (${name})`;
}

/** The service itself: its answers share nothing with what it keeps. `sound` learns which streams are its own. */
function separated(service: AgentService, sound: WeakSet<StreamReply["batches"]>): AgentService {
  return {
    async call(operation, request, context) {
      const reply = await service.call(operation, request, context);
      if (reply.payload instanceof TextPayload) return reply;
      return { ...reply, payload: new TextPayload(reply.payload.json) };
    },
    async stream(operation, request, context) {
      const reply = await service.stream(operation, request, context);
      sound.add(reply.batches);
      return reply;
    },
  };
}

/** An interceptor's service: what it returns is an answer, or it throws. Streams that it hands on are not looked at. */
function checked(service: AgentService, name: string, sound: WeakSet<StreamReply["batches"]>): AgentService {
  return {
    async call<Name extends UnaryName>(...asked: Parameters<typeof service.call<Name>>) {
      const reply: unknown = await service.call(...asked);
      const problem = problemOfReply(reply);
      if (problem !== undefined) throw nonsense(name, asked[0], problem);
      return reply as Awaited<ReturnType<typeof service.call<Name>>>;
    },
    async stream<Name extends StreamName>(...asked: Parameters<typeof service.stream<Name>>) {
      const reply: unknown = await service.stream(...asked);
      const problem = problemOfStream(reply);
      if (problem !== undefined) throw nonsense(name, asked[0], problem);
      const { batches, ...rest } = reply as StreamReply;
      if (sound.has(batches)) return reply as StreamReply;
      const made = new CheckedBatches(batches, (found) => nonsense(name, asked[0], found));
      sound.add(made);
      return { batches: made, ...rest };
    },
  };
}

/** Batches of an interceptor: each of items, and none of them empty, as a filter may leave one. */
class CheckedBatches implements AsyncIterableIterator<Batch, void, void> {
  readonly #batches: AsyncIterable<unknown>;
  readonly #error: (problem: string) => A2AError;
  #source: AsyncIterator<unknown> | undefined;

  constructor(batches: AsyncIterable<unknown>, error: (problem: string) => A2AError) {
    this.#batches = batches;
    this.#error = error;
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async next(): Promise<IteratorResult<Batch, void>> {
    const source = (this.#source ??= this.#batches[Symbol.asyncIterator]());
    for (;;) {
      const result: unknown = await source.next();
      if (!isObject(result)) throw this.#error("gave a stream that is no async iterable");
      if (result["done"] === true) return { done: true, value: undefined };
      const batch = result["value"];
      const problem = problemOfBatch(batch);
      if (problem !== undefined) {
        // The stream ends here: whoever it comes from is told.
        await source.return?.();
        throw this.#error(problem);
      }
      if ((batch as Batch).length > 0) return { done: false, value: batch as Batch };
    }
  }

  async return(): Promise<IteratorResult<Batch, void>> {
    await (this.#source ??= this.#batches[Symbol.asyncIterator]()).return?.();
    return { done: true, value: undefined };
  }
}

function problemOfReply(reply: unknown): string | undefined {
  if (!isObject(reply)) return `returned ${typeName(reply)} in place of a reply`;
  const problem = problemOfPayload(reply["payload"]) ?? problemOfExtensions(reply["extensions"]);
  if (problem !== undefined) return `returned a reply ${problem}`;
  const generations = reply["generations"] as Reply<unknown>["generations"] | undefined;
  return generations === undefined || generations instanceof Map
    ? undefined
    : "returned a reply whose generations are no Map";
}

function problemOfStream(reply: unknown): string | undefined {
  if (!isObject(reply)) return `returned ${typeName(reply)} in place of a stream`;
  const { batches } = reply;
  const iterable = isObject(batches) && typeof batches[Symbol.asyncIterator] === "function";
  if (!iterable) return "returned a stream whose batches are no async iterable";
  const problem = problemOfExtensions(reply["extensions"]);
  return problem && `returned a stream ${problem}`;
}

function problemOfBatch(batch: unknown): string | undefined {
  if (!Array.isArray(batch)) return `gave ${typeName(batch)} in place of a batch of items`;
  for (const item of batch as unknown[]) {
    if (!isObject(item)) return `gave ${typeName(item)} in place of an item`;
    const problem =
      problemOfPayload(item["payload"]) ?? problemOfNumber("seq", item) ?? problemOfNumber("generation", item);
    if (problem !== undefined) return `gave an item ${problem}`;
  }
  return undefined;
}

/** A value that is no object would go out as JSON that is no answer, or as none at all. */
function problemOfPayload(payload: unknown): string | undefined {
  if (!(payload instanceof Payload)) return "without a Payload";
  if (payload instanceof TextPayload || isObject(payload.value)) return undefined;
  return `whose payload is made of ${typeName(payload.value)}`;
}

function problemOfExtensions(extensions: unknown): string | undefined {
  return extensions === undefined || Array.isArray(extensions) ? undefined : "whose extensions are no list";
}

function problemOfNumber(field: "seq" | "generation", item: Readonly<Record<string, unknown>>): string | undefined {
  return item[field] === undefined || Number.isSafeInteger(item[field]) ? undefined : `whose ${field} is no integer`;
}

function nonsense(name: string, operation: OperationName, problem: string): A2AError {
  return new A2AError("InternalError", undefined, { cause: new TypeError(`${name} ${problem}, for ${operation}`) });
}

function isObject(value: unknown): value is Readonly<Record<string | symbol, unknown>> {
  return typeof value === "object" && value !== null;
}

function typeName(value: unknown): string {
  return value === null ? "null" : Array.isArray(value) ? "an array" : typeof value;
}

/**
 * A context that can be spread. The signal of a server's context is made when somebody asks for it, by a getter of its
 * class: a spread leaves it behind. A getter of each context's own would cost every request 0.2 µs, so it is made here,
 * where there is an interceptor.
 */
function spreadable(context: CallContext): CallContext {
  if (!("signal" in context)) return context;
  return {
    ...context,
    ...(context.reserve !== undefined && { reserve: (bytes: number) => context.reserve?.(bytes) ?? Promise.resolve() }),
    get signal() {
      return context.signal as AbortSignal;
    },
  };
}
