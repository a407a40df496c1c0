import { silentLogger, type Logger } from "../base/index.ts";
import { invalidParams, toA2AError, type A2AError } from "../model/index.ts";
import { spreadable, type Interceptor } from "./intercept.ts";
import type { OperationName } from "./operations.ts";
import { finishing, type CallContext, type Principal } from "./service.ts";

/** Called once at the end of what is observed. `error`: why it failed. Absent: it succeeded. */
export type Ended = (error?: A2AError) => void;

/** What an observer opens around a call, a turn or a request, such as a span. */
export interface Observation {
  /**
   * Calls `work` once, at once, and returns what it returns. What the observer makes active meanwhile is active in everything that is
   * observed: for a turn the code of the agent, its steps, its delegations and its other calls.
   *
   * @example
   * ```ts
   * import { AsyncLocalStorage } from "node:async_hooks";
   *
   * const storage = new AsyncLocalStorage<string>();
   * const observer: Observer = { turn: ({ taskId }) => ({ run: (work) => storage.run(taskId, work) }) };
   * ```
   */
  run?<T>(work: () => T): T;
  /**
   * W3C `traceparent` of what was opened, which replaces that of the caller in everything within: a call passes it to the turn that it
   * begins, a turn to the agents that it calls, and a request sends it, over any binding.
   */
  readonly trace?: string;
  /** Called once at the end. */
  end?(error?: A2AError): void;
}

/** What a member of an observer returns that is called at a beginning: what it has opened, or only what is called at the end. */
export type Begun = Ended | Observation | undefined | void;

/**
 * Is told what a server and a client do, for metrics, traces and logs. Every member is optional, and an absent member costs
 * nothing. A member that is called at a beginning may return a function that is called at the end, or an `Observation` that also
 * puts what is observed into a context.
 *
 * An observer changes nothing. An error that a member throws, or rejects with, is logged: on a server by its logger, at a
 * client by the one that `connect()` and `observeRequests` were given.
 *
 * @example
 * ```ts
 * const counter: Observer = {
 *   call({ operation }) {
 *     const since = performance.now();
 *     return (error) => console.log(operation, error?.code ?? "ok", performance.now() - since);
 *   },
 * };
 * ```
 */
export interface Observer {
  /**
   * A server calls the service of an agent, after authentication and before authorization. The call of a stream ends with the stream.
   * Requests that are rejected before are not reported.
   */
  call?(call: ObservedCall): Begun;
  /** An agent begins a turn. */
  turn?(turn: ObservedTurn): Begun;
  /** The store begins a transaction, which may store the records of several tasks. */
  commit?(commit: ObservedCommit): Begun;
  /** Records were stored in the log of a task. */
  append?(append: ObservedAppend): void;
  /**
   * A client sends a request to an agent; at a server see `call`. Each retry is a request: see `observeRequests`. The request of a stream
   * ends with the stream.
   */
  request?(request: ObservedRequest): Begun;
  /** A client's request failed, and it waits before it retries, or before it reconnects a stream: see `observer` of `connect()`. */
  retry?(retry: ObservedRetry): void;
  /** A client asks an address for the card of an agent. It may ask several. A card from its cache is not reported. */
  card?(card: ObservedCard): Begun;
  /**
   * A server posts an event to a webhook (A2A 1.0 §3.5.3), each attempt for itself. The returned function is called once, when
   * the attempt is over.
   */
  delivery?(delivery: ObservedDelivery): ((result: DeliveryResult) => void) | undefined | void;
  /** A server starts. `gauges` can be read until it is closed; then the returned function is called. */
  gauges?(gauges: Gauges): (() => void) | undefined | void;
}

/** Values of a server that are read when somebody asks for them. */
export interface Gauges {
  /** What this process does now. It is cheap. */
  process(): ProcessGauges;
  /** What waits in the store, for the agents of this server. It asks the store; processes that share one read the same values. */
  store(): Promise<StoreGauges>;
}

/** What a process does. */
export interface ProcessGauges {
  /** Runs of agents that do more than wait: `limits.runs` limits them. */
  readonly activeRuns: number;
  /** Runs that only wait, for another agent or an authorization. */
  readonly restingRuns: number;
  /** Bytes of JSON of the tasks that run and the messages that they answer: `limits.totalBytes` limits them. */
  readonly usedBytes: number;
}

/** What waits in a store. Of each kind at most 1,000 are counted, 10,000 of `queuedTasks`: these numbers stand for any larger one. */
export interface StoreGauges {
  /** Tasks that wait for a process with room. */
  readonly queuedTasks: number;
  /** For how long the first of them has waited, in milliseconds. 0: none waits. */
  readonly queueAgeMs: number;
  /** Tasks that wait for a time. */
  readonly waitingTasks: number;
  /** Webhooks whose next attempt is due, and not made yet. */
  readonly dueWebhooks: number;
  /** Tasks that no process takes over until an operator resumes them. */
  readonly suspendedTasks: number;
}

/** How an attempt to deliver an event ended. */
export interface DeliveryResult {
  /** The HTTP status of the answer. Absent: there was none. */
  readonly status?: number;
  /** Why the event counts as not delivered. Absent: it was delivered. */
  readonly error?: A2AError;
}

/** A call of an agent's service. */
export interface ObservedCall {
  /** The operation that is called. */
  readonly operation: OperationName;
  /** The id of the agent (`AgentMount.id`). */
  readonly agent: string;
  /** Who calls. */
  readonly principal: Principal;
  /** Protocol version, `Major.Minor`. */
  readonly version: string;
  /** W3C `traceparent` of the caller. */
  readonly trace: string | undefined;
}

/** A turn of an agent. */
export interface ObservedTurn {
  /** The id of the agent. */
  readonly agent: string;
  /** Id of the task, which may not exist yet. */
  readonly taskId: string;
  /** The conversation. */
  readonly contextId: string;
  /** Number of the turn in its task, from 1. */
  readonly turn: number;
  /** Which attempt of the turn, from 1. A higher number resumes a run that was lost. */
  readonly attempt: number;
  /** W3C `traceparent` of the call that the turn answers. */
  readonly trace: string | undefined;
}

/** A transaction of the store. */
export interface ObservedCommit {
  /** How many items it has, each for one task or conversation. */
  readonly items: number;
}

/** Records that were stored. */
export interface ObservedAppend {
  /** The id of the agent. */
  readonly agent: string;
  /** The task. */
  readonly taskId: string;
  /** How many records there were. */
  readonly records: number;
  /** Number of the last of them in the log of the task, from 1. */
  readonly seq: number;
}

/** A request to an agent. */
export interface ObservedRequest {
  /** The operation that is called. */
  readonly operation: OperationName;
  /** Protocol version, `Major.Minor`. */
  readonly version: string;
  /** W3C `traceparent` that goes with it. */
  readonly trace: string | undefined;
}

/** A request for the card of an agent. */
export interface ObservedCard {
  /** The address that is asked. */
  readonly url: string;
}

/** The wait of a client between two attempts. */
export interface ObservedRetry {
  /** The operation that failed, or the request for the card. */
  readonly operation: OperationName | "AgentCard";
  /** The task of a stream that is reconnected. */
  readonly taskId?: string;
  /** How many attempts in a row have failed. */
  readonly attempt: number;
  /** Time since the first of them failed, in milliseconds. */
  readonly elapsed: number;
  /** How long the client waits now, in milliseconds. */
  readonly delay: number;
  /** Why the last attempt failed. */
  readonly error: A2AError;
}

/** An attempt to post an event to a webhook. */
export interface ObservedDelivery {
  /** The id of the agent. */
  readonly agent: string;
  /** The task. */
  readonly taskId: string;
  /** The id of the webhook's configuration (`TaskPushNotificationConfig.id`). */
  readonly configId: string;
  /** The origin of the webhook, without its path, which may hold a secret. */
  readonly origin: string;
  /** Number of the event in the log of the task, from 1. */
  readonly seq: number;
  /** Which attempt for this event, from 1. */
  readonly attempt: number;
  /** W3C `traceparent` that goes with it. */
  readonly trace: string | undefined;
}

/**
 * The same observer, with its errors logged, also those of promises that it returns. Absent members stay absent.
 *
 * @throws A2AError `InvalidParams` where it is not an object.
 */
export function safeObserver(observer: Observer, logger: Logger): Observer {
  if (typeof observer !== "object")
    throw invalidParams([{ field: "observer", description: "must be an object, such as { call() {} }" }]);
  const failed = (cause: unknown): void => logger.error("An observer failed", { cause });
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
  const ends =
    <T, End extends readonly unknown[]>(begin: (observed: T) => ((...end: End) => void) | undefined | void) =>
    (observed: T): ((...end: End) => void) | undefined => {
      const ended = attempt(() => begin.call(observer, observed));
      return typeof ended === "function" ? (...end) => attempt(() => ended(...end)) : undefined;
    };
  const begins =
    <T>(begin: (observed: T) => Begun) =>
    (observed: T): Observation | undefined =>
      safeObservation(
        attempt(() => begin.call(observer, observed)),
        attempt,
      );
  const { call, turn, commit, append, request, retry, card, delivery, gauges } = observer;
  return {
    ...(call !== undefined && { call: begins(call) }),
    ...(turn !== undefined && { turn: begins(turn) }),
    ...(commit !== undefined && { commit: begins(commit) }),
    ...(append !== undefined && {
      append: (observed: ObservedAppend) => attempt(() => append.call(observer, observed)),
    }),
    ...(request !== undefined && { request: begins(request) }),
    ...(retry !== undefined && { retry: (observed: ObservedRetry) => attempt(() => retry.call(observer, observed)) }),
    ...(card !== undefined && { card: begins(card) }),
    ...(delivery !== undefined && { delivery: ends(delivery) }),
    ...(gauges !== undefined && { gauges: ends(gauges) }),
  };
}

/** Calls code of an observer, and logs what it throws. */
type Attempt = <T>(run: () => T) => T | undefined;

/** The same, so that it can neither fail nor change what it observes. */
function safeObservation(begun: Begun, attempt: Attempt): Observation | undefined {
  if (typeof begun === "function") return { end: (error) => attempt(() => begun(error)) };
  if (typeof begun !== "object" || begun instanceof Promise) return undefined;
  const { trace } = begun;
  return {
    ...(typeof trace === "string" && { trace }),
    ...(begun.run !== undefined && {
      run: (work) => runOnce(work, (once) => attempt(() => begun.run?.(once))),
    }),
    ...(begun.end !== undefined && { end: (error) => attempt(() => begun.end?.(error)) }),
  };
}

/** Does the work within `run`, and once, whether `run` calls it never, twice or later. */
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

/** Does what is observed within what the observer has opened, and reports its end. */
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

function observationOf(begun: Begun): Observation {
  return typeof begun === "function" ? { end: begun } : (begun ?? {});
}

/** An interceptor that reports each call of a service to `begin`. */
function observing(begin: (operation: OperationName, context: CallContext) => Begun): Interceptor {
  return (next) => ({
    call(operation, request, context) {
      const begun = begin(operation, context);
      return observe(begun, () => next.call(operation, request, within(context, begun)));
    },
    async stream(operation, request, context) {
      const { end, ...begun } = observationOf(begin(operation, context));
      if (end === undefined) return observe(begun, () => next.stream(operation, request, within(context, begun)));
      const ended = once(end);
      try {
        const reply = await observe(begun, () => next.stream(operation, request, within(context, begun)));
        return { ...reply, batches: finishing(reply.batches, ended) };
      } catch (thrown) {
        ended(toA2AError(thrown));
        throw thrown;
      }
    },
  });
}

/** The context of a call, with the trace of its observation. */
function within(context: CallContext, begun: Begun): CallContext {
  const { trace } = observationOf(begun);
  if (trace === undefined) return context;
  const own = spreadable(context);
  return own === context ? { ...context, trace } : Object.assign(own, { trace });
}

/** Reports the end of a stream once, though its reader may leave it after the end. */
function once(ended: Ended): Ended {
  let over = false;
  return (error) => {
    if (!over) ended(error);
    over = true;
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
 * repeated request is reported once for each try. Requests for the card are reported by
 * `connect()` to its `observer`.
 *
 * @param logger - Is told of errors of the observer.
 *
 * @example
 * ```ts
 * const observer: Observer = { request: ({ operation }) => console.log(operation) };
 * const client = await connect("http://localhost:4000", { interceptors: [observeRequests(observer)] });
 * ```
 */
export function observeRequests(observer: Observer, logger: Logger = silentLogger): Interceptor {
  const { request } = safeObserver(observer, logger);
  return observing((operation, { version, trace }) => request?.({ operation, version, trace }));
}
