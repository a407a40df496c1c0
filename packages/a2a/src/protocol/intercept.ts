import { A2AError, invalidParams, type AgentCard, type AgentInterface } from "../model/index.ts";
import type { OperationName, StreamName, UnaryName } from "./operations.ts";
import {
  Payload,
  TextPayload,
  type AgentService,
  type CallContext,
  type StreamItem,
  type StreamReply,
} from "./service.ts";

/**
 * Wraps a service, for logging, limits or authorization. Returns a service that answers every call, usually with the answer of
 * `next`.
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
export type Interceptor = (next: AgentService, target?: CallTarget) => AgentService;

/** At a client: the agent that receives its requests. */
export interface CallTarget {
  /** The card that the client uses. */
  readonly card: AgentCard;
  /** The interface that it uses now. */
  chosen(): AgentInterface;
}

type Batch = readonly StreamItem[];

/**
 * A service behind interceptors, the first one outermost. Their answers are checked: an invalid one becomes an `InternalError` whose
 * `cause` names the interceptor. Values of `service` are frozen. Throws `InvalidParams` for a value that is not an interceptor.
 */
export function intercept(service: AgentService, interceptors: readonly Interceptor[]): AgentService {
  if (interceptors.length === 0) return service;
  const outermost = chain(separated(service), interceptors, hidden);
  return {
    call: (operation, request, context) => outermost.call(operation, request, spreadable(context)),
    stream: (operation, request, context) => outermost.stream(operation, request, spreadable(context)),
  };
}

/**
 * A client's service behind interceptors. The message of the error for an invalid answer names the interceptor. Throws
 * `InvalidParams` for a value that is not an interceptor.
 */
export function interceptClient(
  service: AgentService,
  interceptors: readonly Interceptor[],
  target?: CallTarget,
): AgentService {
  return interceptors.length === 0 ? service : chain(service, interceptors, shown, target);
}

/** Makes the error for an interceptor that returned no answer. */
type ErrorOf = (problem: string) => A2AError;

const hidden: ErrorOf = (problem) => new A2AError("InternalError", undefined, { cause: new TypeError(problem) });
const shown: ErrorOf = (problem) => new A2AError("InternalError", problem);

function chain(
  service: AgentService,
  interceptors: readonly Interceptor[],
  errorOf: ErrorOf,
  target?: CallTarget,
): AgentService {
  /** Streams that need no check. */
  const sound = new WeakSet<StreamReply["batches"]>();
  return interceptors.reduceRight<AgentService>(
    (next, interceptor, at) => checked(wrap(interceptor, next, at, target), nameOf(interceptor, at), sound, errorOf),
    {
      call: (operation, request, context) => service.call(operation, request, context),
      async stream(operation, request, context) {
        const reply = await service.stream(operation, request, context);
        sound.add(reply.batches);
        return reply;
      },
    },
  );
}

function wrap(interceptor: Interceptor, next: AgentService, at: number, target: CallTarget | undefined): AgentService {
  const made: unknown = typeof interceptor === "function" ? interceptor(next, target) : undefined;
  if (isService(made)) return made;
  const description = "must be a function from a service to a service, which has `call` and `stream`";
  throw invalidParams([{ field: `interceptors[${at}]`, description }], `interceptors[${at}] ${description}`);
}

function isService(made: unknown): made is AgentService {
  return isObject(made) && typeof made["call"] === "function" && typeof made["stream"] === "function";
}

function nameOf({ name }: Interceptor, at: number): string {
  return name === "" ? `interceptors[${at}]` : `interceptors[${at}] (${name})`;
}

/** The innermost service. Copies its answers, so that they share no objects with its own data. */
function separated(service: AgentService): AgentService {
  return {
    async call(operation, request, context) {
      const reply = await service.call(operation, request, context);
      if (reply.payload instanceof TextPayload) return reply;
      return { ...reply, payload: new TextPayload(reply.payload.json) };
    },
    stream: (operation, request, context) => service.stream(operation, request, context),
  };
}

/** Checks the answers of an interceptor's service. A stream in `sound`, which the interceptor only forwards, is not checked again. */
function checked(
  service: AgentService,
  name: string,
  sound: WeakSet<StreamReply["batches"]>,
  errorOf: ErrorOf,
): AgentService {
  const nonsense = (operation: OperationName, problem: string): A2AError =>
    errorOf(`${name} ${problem}, for ${operation}`);
  return {
    async call<Name extends UnaryName>(...asked: Parameters<typeof service.call<Name>>) {
      const reply = await service.call(...asked);
      const problem = problemOfReply(reply);
      if (problem !== undefined) throw nonsense(asked[0], problem);
      return reply;
    },
    async stream<Name extends StreamName>(...asked: Parameters<typeof service.stream<Name>>) {
      const reply = await service.stream(...asked);
      const problem = problemOfStream(reply);
      if (problem !== undefined) throw nonsense(asked[0], problem);
      const { batches, ...rest } = reply;
      if (sound.has(batches)) return reply;
      const made = new CheckedBatches(batches, (found) => nonsense(asked[0], found));
      sound.add(made);
      return { batches: made, ...rest };
    },
  };
}

/** Checks each item of an interceptor's batches. Drops empty batches, which filters may leave. */
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
    const source: unknown = (this.#source ??= this.#batches[Symbol.asyncIterator]());
    for (;;) {
      const result: unknown = isSource(source) ? await source.next() : undefined;
      if (!isSource(source) || !isObject(result)) throw this.#error("gave a stream that is not an async iterable");
      if (result["done"] === true) return { done: true, value: undefined };
      const batch = result["value"];
      const problem = problemOfBatch(batch);
      if (problem !== undefined) {
        // Closes the source, because the stream ends here. The error is already known.
        await this.return().catch(() => {});
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
  const { generations } = reply;
  return generations === undefined || generations instanceof Map
    ? undefined
    : "returned a reply whose generations are not a Map";
}

function problemOfStream(reply: unknown): string | undefined {
  if (!isObject(reply)) return `returned ${typeName(reply)} in place of a stream`;
  const { batches } = reply;
  const iterable = isObject(batches) && typeof batches[Symbol.asyncIterator] === "function";
  if (!iterable) return "returned a stream whose batches are not an async iterable";
  const problem = problemOfExtensions(reply["extensions"]);
  return problem && `returned a stream ${problem}`;
}

function problemOfBatch(batch: unknown): string | undefined {
  if (!Array.isArray(batch)) return `gave ${typeName(batch)} in place of a batch of items`;
  const items: readonly unknown[] = batch;
  for (const item of items) {
    if (!isObject(item) || isPromise(item)) return `gave ${typeName(item)} in place of an item`;
    const problem =
      problemOfPayload(item["payload"]) ?? problemOfNumber("seq", item) ?? problemOfNumber("generation", item);
    if (problem !== undefined) return `gave an item ${problem}`;
  }
  return undefined;
}

/** Reports values other than objects, because their JSON would not be a valid answer. */
function problemOfPayload(payload: unknown): string | undefined {
  if (!(payload instanceof Payload)) return "without a Payload";
  if (payload instanceof TextPayload || (isObject(payload.value) && !isPromise(payload.value))) return undefined;
  return `whose payload is made of ${typeName(payload.value)}`;
}

function problemOfExtensions(extensions: unknown): string | undefined {
  return extensions === undefined || Array.isArray(extensions) ? undefined : "whose extensions are not a list";
}

function problemOfNumber(field: "seq" | "generation", item: Readonly<Record<string, unknown>>): string | undefined {
  return item[field] === undefined || Number.isSafeInteger(item[field])
    ? undefined
    : `whose ${field} is not an integer`;
}

function isSource(value: unknown): value is AsyncIterator<unknown> {
  return isObject(value) && typeof value["next"] === "function";
}

function isObject(value: unknown): value is Readonly<Record<string | symbol, unknown>> {
  return typeof value === "object" && value !== null;
}

/** Detects a missing `await`. The promise stays without a handler, so its rejection must not end the process. */
function isPromise(value: unknown): boolean {
  if (!(value instanceof Promise)) return false;
  value.catch(() => {});
  return true;
}

function typeName(value: unknown): string {
  if (value instanceof Promise) return "a promise";
  return value === null ? "null" : Array.isArray(value) ? "an array" : typeof value;
}

/**
 * A context that interceptors can spread. A server's context has its getters on its class, because own getters would cost every request
 * 0.2 µs.
 */
export function spreadable(context: CallContext): CallContext {
  if (!("signal" in context)) return context;
  return {
    ...context,
    ...(context.reserve !== undefined && { reserve: (bytes: number) => context.reserve?.(bytes) ?? Promise.resolve() }),
    get signal() {
      return context.signal;
    },
    get address() {
      return context.address;
    },
  };
}

/**
 * Changes each item in the batches of a stream, for interceptors. `change` returns `undefined` to drop an item; an error of `change` ends the stream.
 * Unlike a generator, closing the result closes the stream immediately, even while a read waits.
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
