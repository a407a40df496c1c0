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
  /** Of a request and a delivery: further headers that go with it, over any binding, such as `tracestate` and `baggage`. */
  readonly headers?: Readonly<Record<string, string>>;
  /** Of a call and a request: called with the response, and with the events of a stream as they come. */
  answered?(answer: ObservedAnswer): void;
  /** Of a turn: called with what the agent has yielded, before it is stored. */
  yielded?(events: readonly AgentEvent[]): void;
  /** Called once at the end. */
  end?(error?: A2AError): void;
}

/** What is opened around a delivery. */
export interface DeliveryObservation extends Pick<Observation, "run" | "trace" | "headers"> {
  /** Called once at the end. */
  end?(result: DeliveryResult): void;
}

/** What `Observer.delivery` returns: what it has opened, or only what is called at the end. */
export type BegunDelivery = ((result: DeliveryResult) => void) | DeliveryObservation | undefined | void;

/** What a member of an observer returns that is called at a beginning: what it has opened, or only what is called at the end. */
export type Begun = Ended | Observation | undefined | void;

/**
 * Is told what a server and a client do, for metrics, traces and logs. Every member is optional, and an absent member costs
 * nothing. A member that is called at a beginning may return a function that is called at the end, or an `Observation` that also
 * puts what is observed into a context.
 *
 * An observer changes nothing. An error that a member throws, or rejects with, is logged once, and at most 20 of them: on a server by its logger, at a
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
  delivery?(delivery: ObservedDelivery): BegunDelivery;
  /** An agent begins a step (`turn.step()`). */
  step?(step: ObservedStep): Begun;
  /** An agent begins to delegate (`turn.delegate()`), or continues to. */
  delegation?(delegation: ObservedDelegation): Begun;
  /** A run was taken over, has lost its lease, or is suspended. */
  lease?(lease: ObservedLease): void;
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
  /** The pool of the store's connections. Absent: the store has none. */
  readonly connections?: PoolGauges;
}

/** Connections to a database. */
export interface PoolGauges {
  /** How many are open. */
  readonly total: number;
  /** How many of them do nothing. */
  readonly idle: number;
  /** How many statements wait for one. */
  readonly waiting: number;
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
  /** For how long the first of them has been due, in milliseconds. 0: none is. */
  readonly webhookDelayMs: number;
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
export interface ObservedCall extends CallFacts {
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
  /** The agent, as its card says. Absent where the service has no card. */
  readonly card?: ObservedAgent | undefined;
  /** IP address of the caller, where the host knows it. */
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
  /** Which attempt of the turn, from 1. A higher number resumes a run that was lost. */
  readonly attempt: number;
  /** W3C `traceparent` of the call that the turn answers. */
  readonly trace: string | undefined;
  /** The agent, as its card says. */
  readonly card: ObservedAgent;
  /** The message that the turn answers. */
  readonly message: Message;
  /** Who sent it. */
  readonly principal: Principal;
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
export interface ObservedRequest extends CallFacts {
  /** The operation that is called. */
  readonly operation: OperationName;
  /** Protocol version, `Major.Minor`. */
  readonly version: string;
  /** W3C `traceparent` that goes with it. */
  readonly trace: string | undefined;
  /** The agent, as its card says. Absent where the client has none. */
  readonly card?: ObservedAgent | undefined;
  /** The address of the chosen interface. */
  readonly url?: string | undefined;
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
