import { defined } from "../base/defined.ts";
import { silentLogger, type Logger } from "../base/index.ts";
import { invalidParams, toA2AError } from "../model/index.ts";
import { spreadable, type CallTarget, type Interceptor } from "./intercept.ts";
import {
  answerOf,
  callFacts,
  type CallFacts,
  type ObservedAgent,
  type ObservedAnswer,
  type ObservedStep,
  type TurnObserver,
} from "./observed.ts";
import type { Begun, Ended, Gauges, Observation, ObservedCall, Observer } from "./observer.ts";
import type { OperationName } from "./operations.ts";
import { finishing, type CallContext, type HeaderReader, type Principal, type StreamReply } from "./service.ts";

/* Calls observers so that they cannot fail or change the observed call. */

/**
 * Wraps an observer so that its errors are logged, including rejections. Absent members stay absent.
 *
 * @throws A2AError `InvalidParams` if it is not an object.
 */
export function safeObserver(observer: Observer, logger: Logger): Observer {
  if (typeof observer !== "object")
    throw invalidParams([{ field: "observer", description: "must be an object, such as { call() {} }" }]);
  const told = toldOf(observer);
  const failed = (cause: unknown): void => {
    // Log each error only once: a failing exporter would otherwise fill the log with each span.
    const text = String(cause).slice(0, 200);
    if (told.size >= maxErrors || told.has(text)) return;
    told.add(text);
    logger.error("An observer failed", { cause });
  };
  const attempt: Attempt = (run) => {
    try {
      const result = run();
      // An async member fits the types. Without a handler its rejection would end the process.
      if (result instanceof Promise) result.catch(failed);
      return result;
    } catch (cause) {
      failed(cause);
      return undefined;
    }
  };
  const begins =
    <T, End extends readonly unknown[]>(begin: (observed: T) => Opening<End>) =>
    (observed: T): Opened<End> | undefined =>
      safeObservation(
        attempt(() => begin.call(observer, observed)),
        attempt,
      );
  const tells =
    <T>(tell: (observed: T) => void) =>
    (observed: T): void =>
      attempt(() => tell.call(observer, observed));
  const { call, turn, commit, append, request, retry, card, delivery, gauges, step, delegation, lease } = observer;
  return defined({
    call: call && begins(call),
    turn: turn && begins(turn),
    commit: commit && begins(commit),
    request: request && begins(request),
    card: card && begins(card),
    step: step && begins(step),
    delegation: delegation && begins(delegation),
    append: append && tells(append),
    retry: retry && tells(retry),
    lease: lease && tells(lease),
    delivery: delivery && begins(delivery),
    gauges:
      gauges &&
      ((read: Gauges) => {
        const close = attempt(() => gauges.call(observer, read));
        return typeof close === "function" ? () => attempt(close) : undefined;
      }),
  });
}

/** Maximum number of different errors of an observer that are logged. */
const maxErrors = 20;

const toldBy = new WeakMap<Observer, Set<string>>();

/** The errors of an observer that were logged. Cached, because a server and its engine wrap the same observer. */
function toldOf(observer: Observer): Set<string> {
  const told = toldBy.get(observer) ?? new Set<string>();
  toldBy.set(observer, told);
  return told;
}

/** Calls an observer's code, and logs its errors. */
type Attempt = <T>(run: () => T) => T | undefined;

/** An `Observation`, or one of a delivery. */
interface Opened<End extends readonly unknown[]> extends Omit<Observation, "end"> {
  end?(...end: End): void;
}

type Opening<End extends readonly unknown[]> = ((...end: End) => void) | Opened<End> | undefined | void;

/** Wraps an observation so that it cannot fail or change the observed call. */
function safeObservation<End extends readonly unknown[]>(
  begun: Opening<End>,
  attempt: Attempt,
): Opened<End> | undefined {
  if (typeof begun === "function") return { end: (...end) => attempt(() => begun(...end)) };
  if (typeof begun !== "object" || begun instanceof Promise) return undefined;
  // No spreads, for speed, because each message has two of these.
  const { trace, headers, run, answered, yielded, end } = begun;
  const safe: Writable<Opened<End>> = {};
  if (typeof trace === "string") safe.trace = trace;
  if (headers) safe.headers = headers;
  if (run) safe.run = (work) => runOnce(work, (once) => attempt(() => begun.run?.(once)));
  if (answered) safe.answered = (answer) => attempt(() => begun.answered?.(answer));
  if (yielded) safe.yielded = (events) => attempt(() => begun.yielded?.(events));
  if (end) safe.end = (...given) => attempt(() => begun.end?.(...given));
  return safe;
}

type Writable<T> = { -readonly [Key in keyof T]: T[Key] };

/** Runs the work within `run`, and exactly once, even if `run` calls it never, twice or later. */
function runOnce<T>(work: () => T, run: (once: () => void) => void): T {
  let result: (() => T) | undefined;
  const once = (): (() => T) => (result ??= resultOf(work));
  run(once);
  return once()();
}

function resultOf<T>(work: () => T): () => T {
  try {
    const value = work();
    return () => value;
  } catch (error) {
    return () => {
      throw error;
    };
  }
}

/** Runs work within the observer's observation, and reports its end. */
export async function observe<T>(begun: Begun, work: () => Promise<T>): Promise<T> {
  const { run, end } = observationOf(begun);
  try {
    const result = await (run ? run(work) : work());
    end?.();
    return result;
  } catch (thrown) {
    end?.(toA2AError(thrown));
    throw thrown;
  }
}

/** The observation that an observer opened. */
export function observationOf(begun: Begun): Observation {
  return typeof begun === "function" ? { end: begun } : (begun ?? {});
}

/** An interceptor that reports each call of a service to `begin`. */
function observing(
  begin: (operation: OperationName, context: CallContext, request: object, target?: CallTarget) => Begun,
): Interceptor {
  return (next, target) => ({
    call(operation, request, context) {
      const begun = begin(operation, context, request, target);
      const { answered } = observationOf(begun);
      const called = () => next.call(operation, request, within(context, begun));
      if (answered === undefined) return observe(begun, called);
      return observe(begun, async () => {
        const reply = await called();
        answered(answerOf(reply.payload, 1));
        return reply;
      });
    },
    async stream(operation, request, context) {
      const { end, ...begun } = observationOf(begin(operation, context, request, target));
      const { answered } = begun;
      if (end === undefined && answered === undefined)
        return observe(begun, () => next.stream(operation, request, within(context, begun)));
      const ended = once(end ?? (() => {}));
      try {
        const reply = await observe(begun, () => next.stream(operation, request, within(context, begun)));
        const batches = finishing(reply.batches, ended);
        return { ...reply, batches: answered === undefined ? batches : telling(batches, answered) };
      } catch (thrown) {
        ended(toA2AError(thrown));
        throw thrown;
      }
    },
  });
}

/** Reports each batch of a stream, with the data of its last event that is not an artifact chunk. */
function telling(batches: StreamReply["batches"], answered: (answer: ObservedAnswer) => void): StreamReply["batches"] {
  return {
    [Symbol.asyncIterator]() {
      const source = batches[Symbol.asyncIterator]();
      const leave = source.return?.bind(source);
      return {
        async next() {
          const result = await source.next();
          if (result.done !== true) {
            const { length } = result.value;
            let answer: ObservedAnswer = { events: length };
            for (const { payload } of result.value) answer = { ...answer, ...answerOf(payload, length) };
            answered(answer);
          }
          return result;
        },
        ...(leave !== undefined && { return: () => leave() }),
      };
    },
  };
}

/** The context of a call, with the trace and the headers of its observation. */
function within(context: CallContext, begun: Begun): CallContext {
  const { trace, headers } = observationOf(begun);
  if (trace === undefined && headers === undefined) return context;
  const { outgoing } = context;
  const given = {
    ...(trace !== undefined && { trace }),
    ...(headers !== undefined && { outgoing: { ...outgoing, headers: { ...headers, ...outgoing?.headers } } }),
  };
  if (!("signal" in context)) return { ...context, ...given };
  return Object.hasOwn(context, "signal") || context.reserve === undefined
    ? Object.assign(spreadable(context), given)
    : new ContextWithin(context, given);
}

/** The changed context of a server's call. A class, because getters on an object literal cost each call 3 µs. */
class ContextWithin implements CallContext {
  declare readonly principal: Principal;
  declare readonly version: string;
  declare readonly extensions: readonly string[];
  readonly #context: CallContext;

  constructor(context: CallContext, given: Partial<CallContext>) {
    this.#context = context;
    Object.assign(this, context, given);
  }

  get signal(): AbortSignal | undefined {
    return this.#context.signal;
  }

  get address(): string | undefined {
    return this.#context.address;
  }

  reserve(bytes: number): Promise<void> {
    return this.#context.reserve?.(bytes) ?? Promise.resolve();
  }
}

/** Reports the end of a stream only once, even if its reader leaves after the end. */
function once(ended: Ended): Ended {
  let over = false;
  return (error) => {
    if (!over) ended(error);
    over = true;
  };
}

/** Reports the calls of an agent's service to `observer.call`. `agent`: the agent's id. */
export function observeCalls(observer: Observer, agent: string, card?: ObservedAgent): Interceptor {
  return observing((operation, context, request) =>
    observer.call?.(new CallOfContext(operation, agent, card, context, callFacts(operation, request))),
  );
}

/** A class, because of its lazy getter: the address is looked up at the socket, and few observers read the address. */
class CallOfContext implements ObservedCall {
  readonly operation: OperationName;
  readonly agent: string;
  readonly card: ObservedAgent | undefined;
  readonly principal: Principal;
  readonly version: string;
  readonly trace: string | undefined;
  readonly headers: HeaderReader | undefined;
  declare readonly taskId?: string;
  declare readonly contextId?: string;
  declare readonly messageId?: string;
  declare readonly referenceTaskIds?: readonly string[];
  declare readonly tenant?: string;
  readonly #context: CallContext;

  constructor(
    operation: OperationName,
    agent: string,
    card: ObservedAgent | undefined,
    context: CallContext,
    facts: CallFacts,
  ) {
    this.operation = operation;
    this.agent = agent;
    this.card = card;
    this.principal = context.principal;
    this.version = context.version;
    this.trace = context.trace;
    this.headers = context.headers;
    this.#context = context;
    Object.assign(this, facts);
  }

  get address(): string | undefined {
    return this.#context.address;
  }
}

/** The observer for a turn's steps and delegations, if any. */
export function turnObserver(
  { step, delegation }: Observer,
  about: Omit<ObservedStep, "name">,
): TurnObserver<Begun> | undefined {
  if (step === undefined && delegation === undefined) return undefined;
  return {
    ...(step !== undefined && { step: (name) => step({ ...about, name }) }),
    ...(delegation !== undefined && { delegation: (of) => delegation({ ...about, ...of }) }),
  };
}

/**
 * An interceptor for clients: reports each request to the agent, over any binding, to `observer.request`. A retried request is reported once for each
 * attempt. `connect()` reports requests for the card to its own `observer`.
 *
 * @param logger - Logs errors of the observer.
 *
 * @example
 * ```ts
 * const observer: Observer = { request: ({ operation }) => console.log(operation) };
 * const client = await connect("http://localhost:4000", { interceptors: [observeRequests(observer)] });
 * ```
 */
export function observeRequests(observer: Observer, logger: Logger = silentLogger): Interceptor {
  const { request } = safeObserver(observer, logger);
  return observing((operation, { version, trace }, sent, target) => {
    if (request === undefined) return undefined;
    const about = { operation, version, trace, card: target?.card, url: target?.chosen().url };
    return request({ ...callFacts(operation, sent), ...about });
  });
}
