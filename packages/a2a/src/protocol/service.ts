import type { StreamResponse } from "../model/index.ts";
import type { Payload } from "./payload.ts";
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

/** The answer of a unary operation: plain data, so that an interceptor can spread it. */
export interface Reply<T> {
  readonly payload: Payload<T>;
  /** Extension URIs that were activated. */
  readonly extensions?: readonly string[];
  /** Where the version of the call has them (1.1 draft, §3.2.7): the generation of each task in the payload, by its id. */
  readonly generations?: ReadonlyMap<string, number>;
}

/** One event of a stream: plain data, so that an interceptor can spread it. */
export interface StreamItem {
  readonly payload: Payload<StreamResponse>;
  /** The event's place in the log of its task; absent for a direct Message. */
  readonly seq?: number | undefined;
  /** Where the version of the call has them (1.1 draft, §3.2.7): the task's generation after this event. */
  readonly generation?: number;
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
