import { silentLogger, type Logger } from "../base/index.ts";
import { invalidParams, toA2AError, type A2AError } from "../model/index.ts";
import type { OperationName } from "./operations.ts";
import { finishing, type CallContext, type Principal } from "./service.ts";
import type { Interceptor } from "./intercept.ts";

/** Called once at the end of what is observed. `error`: why it failed. Absent: it succeeded. */
export type Ended = (error?: A2AError) => void;

/**
 * Receives what a server and a client do, for metrics, traces and logs. Members are optional; one that is called at a beginning may return
 * a function for the end. It changes nothing: its errors are logged.
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
  /** A call of an agent's service begins, after authentication and before authorization. The call of a stream ends with the stream. */
  call?(call: ObservedCall): Ended | undefined | void;
  /** An agent begins a turn. */
  turn?(turn: ObservedTurn): Ended | undefined | void;
  /** The store begins a transaction, which may store the records of several tasks. */
  commit?(commit: ObservedCommit): Ended | undefined | void;
  /** Records were stored in the log of a task. */
  append?(append: ObservedAppend): void;
  /** A client sends a request to an agent. Each retry is a request: see `observeRequests`. The request of a stream ends with the stream. */
  request?(request: ObservedRequest): Ended | undefined | void;
  /** A client's request failed, and it waits before it retries, or before it reconnects a stream: see `observer` of `connect()`. */
  retry?(retry: ObservedRetry): void;
  /** A client asks an address for the card of an agent. It may ask several. A card from its cache is not reported. */
  card?(card: ObservedCard): Ended | undefined | void;
  /** A server posts an event to a webhook (A2A 1.0 §3.5.3). Called for each attempt; the returned function is called at its end. */
  delivery?(delivery: ObservedDelivery): ((result: DeliveryResult) => void) | undefined | void;
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

/** A task of an agent. */
interface ObservedTask {
  /** The id of the agent (`AgentMount.id`). */
  readonly agent: string;
  /** Id of the task. It may not exist yet when a turn begins. */
  readonly taskId: string;
}

/** A turn of an agent. */
export interface ObservedTurn extends ObservedTask {
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
export interface ObservedAppend extends ObservedTask {
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
export interface ObservedDelivery extends ObservedTask {
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

/** The same observer, with its errors and rejections logged. Absent members stay absent. Throws `InvalidParams` unless it is an object. */
export function safeObserver(observer: Observer, logger: Logger): Observer {
  if (typeof observer !== "object")
    throw invalidParams([{ field: "observer", description: "must be an object, such as { call() {} }" }]);
  const failed = (cause: unknown): void => logger.error("An observer failed", { cause });
  const attempt = <T>(run: () => T): T | undefined => {
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
    <T, End extends readonly unknown[]>(begin: (observed: T) => ((...end: End) => void) | undefined | void) =>
    (observed: T): ((...end: End) => void) | undefined => {
      const ended = attempt(() => begin.call(observer, observed));
      return typeof ended === "function" ? (...end) => attempt(() => ended(...end)) : undefined;
    };
  const { call, turn, commit, append, request, retry, card, delivery } = observer;
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
    ...(delivery !== undefined && { delivery: begins(delivery) }),
  };
}

/** Awaits an answer, and reports its end. */
export async function endedBy<T>(ended: Ended | undefined | void, answer: Promise<T>): Promise<T> {
  if (typeof ended !== "function") return answer;
  try {
    const result = await answer;
    ended();
    return result;
  } catch (thrown) {
    ended(toA2AError(thrown));
    throw thrown;
  }
}

/** An interceptor that reports each call of a service to `begin`. */
function observing(begin: (operation: OperationName, context: CallContext) => Ended | undefined | void): Interceptor {
  return (next) => ({
    call: (operation, request, context) => endedBy(begin(operation, context), next.call(operation, request, context)),
    async stream(operation, request, context) {
      const ended = begin(operation, context);
      if (typeof ended !== "function") return next.stream(operation, request, context);
      try {
        const reply = await next.stream(operation, request, context);
        return { ...reply, batches: finishing(reply.batches, once(ended)) };
      } catch (thrown) {
        ended(toA2AError(thrown));
        throw thrown;
      }
    },
  });
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
 * An interceptor for clients: reports each attempt of a request to `observer.request`. `connect()` reports requests for cards to its own
 * `observer`. `logger`: for errors of the observer.
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
