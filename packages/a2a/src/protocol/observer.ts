import type { A2AError, Message } from "../model/index.ts";
import type { AgentEvent } from "./agent-event.ts";
import type {
  CallFacts,
  ObservedAgent,
  ObservedAnswer,
  ObservedDelegation,
  ObservedLease,
  ObservedStep,
} from "./observed.ts";
import type { OperationName } from "./operations.ts";
import type { HeaderReader, Principal } from "./service.ts";

/** Called once at the end of the observed work. `error`: why it failed. Absent: it succeeded. */
export type Ended = (error?: A2AError) => void;

/** Opened around a call, a turn or a request, such as a span. */
export interface Observation {
  /**
   * Calls `work` once, synchronously, and returns its result. A context that the observer activates during the call is active in all observed
   * work: for a turn, in the agent's code, its steps, its delegations and its other calls.
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
   * W3C `traceparent` of the observation, which replaces the caller's within it: a call passes it to its turn, a turn to the agents that
   * it calls, and a request sends it, over any binding.
   */
  readonly trace?: string;
  /** For a request and a delivery: further headers, over any binding, such as `tracestate` and `baggage`. */
  readonly headers?: Readonly<Record<string, string>>;
  /** For a call and a request: called with the response, and with the events of a stream as they arrive. */
  answered?(answer: ObservedAnswer): void;
  /** For a turn: called with the agent's events before they are stored. */
  yielded?(events: readonly AgentEvent[]): void;
  /** Called once at the end. */
  end?(error?: A2AError): void;
}

/** Opened around a delivery. */
export interface DeliveryObservation extends Pick<Observation, "run" | "trace" | "headers"> {
  /** Called once at the end. */
  end?(result: DeliveryResult): void;
}

/** Result of `Observer.delivery`: an observation, or only a function that is called at the end. */
export type BegunDelivery = ((result: DeliveryResult) => void) | DeliveryObservation | undefined | void;

/** Result of an observer's member: an observation, or only a function that is called at the end. */
export type Begun = Ended | Observation | undefined | void;

/**
 * Observes a server or a client, for metrics, traces and logs. Every member is optional, and an absent member costs
 * nothing. A member that is called at a start may return a function that is called at the end, or an `Observation` that also
 * runs the observed work in a context.
 *
 * An observer changes nothing. Each error or rejection of a member is logged once, at most 20 in all: by the server's logger, or by the logger
 * passed to `connect()` and `observeRequests`.
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
   * Requests that are rejected earlier are not reported.
   */
  call?(call: ObservedCall): Begun;
  /** An agent starts a turn. */
  turn?(turn: ObservedTurn): Begun;
  /** The store starts a transaction, which may store the records of several tasks. */
  commit?(commit: ObservedCommit): Begun;
  /** Records were stored in the log of a task. */
  append?(append: ObservedAppend): void;
  /**
   * A client sends a request to an agent. For servers, see `call`. Each retry is a separate request: see `observeRequests`. The request of a stream
   * ends with the stream.
   */
  request?(request: ObservedRequest): Begun;
  /** A client's request failed, and it waits before it retries, or before it reconnects a stream: see `observer` of `connect()`. */
  retry?(retry: ObservedRetry): void;
  /** A client fetches the card of an agent. It may try several URLs. A card from its cache is not reported. */
  card?(card: ObservedCard): Begun;
  /**
   * A server posts an event to a webhook (A2A 1.0 §3.5.3). Called for each attempt. The returned function is called once, at
   * the end of the attempt.
   */
  delivery?(delivery: ObservedDelivery): BegunDelivery;
  /** An agent starts a step (`turn.step()`). */
  step?(step: ObservedStep): Begun;
  /** An agent starts or continues a delegation (`turn.delegate()`). */
  delegation?(delegation: ObservedDelegation): Begun;
  /** A run was taken over, has lost its lease, or is suspended. */
  lease?(lease: ObservedLease): void;
  /** A server starts. `gauges` can be read until it is closed; then the returned function is called. */
  gauges?(gauges: Gauges): (() => void) | undefined | void;
}

/** Values of a server, read on demand. */
export interface Gauges {
  /** Current values of this process. Cheap. */
  process(): ProcessGauges;
  /** Waiting work in the store, for this server's agents. Queries the store; processes that share it read the same values. */
  store(): Promise<StoreGauges>;
}

/** Current values of a process. */
export interface ProcessGauges {
  /** Runs of agents that do more than wait: `limits.runs` limits them. */
  readonly activeRuns: number;
  /** Runs that only wait for another agent or an authorization. */
  readonly restingRuns: number;
  /** Bytes of JSON of the tasks that run and the messages that they answer: `limits.totalBytes` limits them. */
  readonly usedBytes: number;
  /** Connections of the store's pool: how many are open, how many of them idle, how many callers wait for one. Absent: it has no pool. */
  readonly connections?: { readonly total: number; readonly idle: number; readonly waiting: number };
}

/** Waiting work in a store. Counts are capped: at 10,000 for `queuedTasks`, and at 1,000 for the others. */
export interface StoreGauges {
  /** Tasks that wait for a process with free capacity. */
  readonly queuedTasks: number;
  /** How long the first queued task has waited, in milliseconds. 0: none waits. */
  readonly queueAgeMs: number;
  /** Tasks that wait for a time, or for an event with a timeout. */
  readonly waitingTasks: number;
  /** Webhooks whose next attempt is due. */
  readonly dueWebhooks: number;
  /** How long the first due webhook has been due, in milliseconds. 0: none is due. */
  readonly webhookDelayMs: number;
  /** Tasks that no process takes over until an operator resumes them. */
  readonly suspendedTasks: number;
}

/** Result of an attempt to deliver an event. */
export interface DeliveryResult {
  /** The HTTP status of the answer. Absent: there was none. */
  readonly status?: number;
  /** Why the event counts as not delivered. Absent: it was delivered. */
  readonly error?: A2AError;
}

/** A call of an agent's service. */
export interface ObservedCall extends CallFacts {
  /** The operation that is called. */
  readonly operation: OperationName;
  /** The id of the agent (`AgentMount.id`). */
  readonly agent: string;
  /** The caller. */
  readonly principal: Principal;
  /** Protocol version, `Major.Minor`. */
  readonly version: string;
  /** W3C `traceparent` of the caller. */
  readonly trace: string | undefined;
  /** The agent, from its card. Absent if the service has no card. */
  readonly card?: ObservedAgent | undefined;
  /** IP address of the caller, if the host knows it. */
  readonly address?: string | undefined;
  /** Reads a header of the request. Absent for callers in the process. */
  readonly headers?: HeaderReader | undefined;
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
  /** Number of the attempt of the turn, from 1. A higher number resumes a run that was lost. */
  readonly attempt: number;
  /** W3C `traceparent` of the call that the turn answers. */
  readonly trace: string | undefined;
  /** The agent, from its card. */
  readonly card: ObservedAgent;
  /** The message that the turn answers. */
  readonly message: Message;
  /** The sender of the message. */
  readonly principal: Principal;
}

/** A transaction of the store. */
export interface ObservedCommit {
  /** Number of its items, each for one task or conversation. */
  readonly items: number;
}

/** Records that were stored. */
export interface ObservedAppend {
  /** The id of the agent. */
  readonly agent: string;
  /** The task. */
  readonly taskId: string;
  /** Number of the records. */
  readonly records: number;
  /** Number of the last of them in the log of the task, from 1. */
  readonly seq: number;
}

/** A request to an agent. */
export interface ObservedRequest extends CallFacts {
  /** The operation that is called. */
  readonly operation: OperationName;
  /** Protocol version, `Major.Minor`. */
  readonly version: string;
  /** W3C `traceparent` that is sent with it. */
  readonly trace: string | undefined;
  /** The agent, from its card. Absent if the client has none. */
  readonly card?: ObservedAgent | undefined;
  /** The address of the chosen interface. */
  readonly url?: string | undefined;
}

/** A request for the card of an agent. */
export interface ObservedCard {
  /** The URL of the card. */
  readonly url: string;
}

/** The wait of a client between two attempts. */
export interface ObservedRetry {
  /** The operation that failed, or the request for the card. */
  readonly operation: OperationName | "AgentCard";
  /** The task of a stream that is reconnected. */
  readonly taskId?: string;
  /** Number of consecutive failed attempts. */
  readonly attempt: number;
  /** Time since the first failure, in milliseconds. */
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
  /** Number of the attempt for this event, from 1. */
  readonly attempt: number;
  /** W3C `traceparent` that is sent with it. */
  readonly trace: string | undefined;
}
