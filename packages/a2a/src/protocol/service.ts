import type { StreamResponse } from "../model/index.ts";
import type { StreamName, StreamOperations, UnaryName, UnaryOperations } from "./operations.ts";

/**
 * The one port (D5): the engine implements it, every client transport implements it, and so does a proxy or a test
 * double. Interceptors wrap it.
 */

/** Who calls, as an authenticator found out. Never taken from the request's own fields. */
export interface Principal {
  /** Stable name of the caller; `anonymous` where nobody asked for credentials. */
  readonly subject: string;
  readonly organization?: string;
  readonly scopes?: readonly string[];
  /** Verified claims, for authorizers and agents. Stored only as far as an agent declares it (`keepClaims`). */
  readonly claims?: Readonly<Record<string, unknown>>;
}

export const anonymous: Principal = { subject: "anonymous" };

/** What goes with a call beside its request. */
export interface CallContext {
  readonly principal: Principal;
  /** Protocol version of the call, `Major.Minor`. */
  readonly version: string;
  /** Extension URIs that the caller asked for (A2A 1.0 §4.6). */
  readonly extensions: readonly string[];
  /** Aborted when the caller is gone. Ask for it only where something waits: making it has a price. */
  readonly signal?: AbortSignal | undefined;
  /** For streams: the caller has seen everything up to this `seq` (`Last-Event-ID`, D4). */
  readonly after?: number | undefined;
  /**
   * At a server: says how many bytes of JSON the answer is going to hold, before anything that large is loaded. Resolves as
   * soon as the server has room for them, and rejects with `Unavailable` where none comes in time; what is reserved is given
   * back when the answer is out, or its reader gone. Called again it replaces what was said before; less never waits.
   * Absent where nobody counts, as for callers within the process.
   */
  reserve?(bytes: number): Promise<void>;
  /** W3C `traceparent`. */
  readonly trace?: string | undefined;
  /** At a server: a header of the request, by its lower-case name. */
  readonly headers?: HeaderReader;
  /** At a client: how the request goes out. */
  readonly outgoing?: Outgoing;
}

/** What a caller wants of one outgoing request; a limit that is absent is the client's own. */
export interface Outgoing {
  /** Service parameters of the caller's own (A2A 1.0 §3.2.6). */
  readonly headers?: Readonly<Record<string, string>>;
  /** Longest wait for the head of the answer, in milliseconds; `false`: no limit. */
  readonly connectTimeout?: number | false;
  /** Longest silence within an answer, in milliseconds; a keep-alive comment breaks it. `false`: no limit. */
  readonly idleTimeout?: number | false;
}

export type HeaderReader = (name: string) => string | undefined;

/** The answer of a unary operation. */
export interface Reply<T> {
  readonly value: T;
  /** `value` as 1.0 JSON where that text was at hand; a binding of that version writes it as it is. */
  readonly json?: string;
  /** Of a large answer: that text in pieces, to be written one after the other. Reading `json` joins them. */
  readonly pieces?: readonly string[];
  /** Extension URIs that were activated. */
  readonly extensions?: readonly string[];
  /** Where the version of the call has them (1.1 draft, §3.2.7): the generation of each task in `value`. */
  readonly generations?: readonly number[];
}

/** One event of a stream. */
export interface StreamItem {
  /** The event's place in the log of its task; absent for a direct Message. */
  readonly seq?: number;
  /** Where the version of the call has them (1.1 draft, §3.2.7): the task's generation after this event. */
  readonly generation?: number;
  /** Of a large event: its 1.0 JSON text in pieces, as in `Reply`. */
  readonly pieces?: readonly string[];
  /** The event as 1.0 JSON text where that was at hand. */
  readonly json?: string;
  /** The event; where `json` is given it may be parsed only when asked for, and is frozen. */
  readonly event: StreamResponse;
}

/**
 * The answer of a stream operation, given once the request is accepted: what is wrong with it rejects the promise
 * before. Each batch is what had gathered, so that a host writes once a batch; a batch is never empty.
 * Ends when the protocol says that the stream is over; throws an `A2AError` when it broke.
 * `return()` on the iterator lets go of everything.
 */
export interface StreamReply {
  readonly batches: AsyncIterable<readonly StreamItem[]>;
  readonly extensions?: readonly string[];
}

export interface AgentService {
  call<Name extends UnaryName>(
    operation: Name,
    request: UnaryOperations[Name]["request"],
    context: CallContext,
  ): Promise<Reply<UnaryOperations[Name]["response"]>>;
  stream<Name extends StreamName>(
    operation: Name,
    request: StreamOperations[Name]["request"],
    context: CallContext,
  ): Promise<StreamReply>;
}

/** Wraps a service in another: logging, limits, authorization. The first of a list is the outermost. */
export type Interceptor = (next: AgentService) => AgentService;

export function intercept(service: AgentService, interceptors: readonly Interceptor[]): AgentService {
  if (interceptors.length === 0) return service;
  const outermost = interceptors.reduceRight((next, wrap) => wrap(next), service);
  return {
    call: (operation, request, context) => outermost.call(operation, request, spreadable(context)),
    stream: (operation, request, context) => outermost.stream(operation, request, spreadable(context)),
  };
}

/** Interceptors make a context of another by spreading it: a signal that is made late must go along. */
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
