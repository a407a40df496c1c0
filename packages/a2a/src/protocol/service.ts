import { deepFreeze } from "../base/index.ts";
import { toA2AError, type A2AError, type StreamResponse } from "../model/index.ts";
import type { MethodRoute, StreamName, StreamOperations, UnaryName, UnaryOperations } from "./operations.ts";
import { writtenValue } from "../base/json-text.ts";

/**
 * A response or an event, as a value and as JSON text. Each form is derived from the other on first read, so stored text is sent without being
 * parsed. The value of a `TextPayload` is frozen. To change a payload, create another one with `map`.
 *
 * @example
 * ```ts
 * const reply = await next.call(operation, request, context);
 * return { ...reply, payload: reply.payload.map((value) => redact(value)) };
 * ```
 */
export class Payload<T> {
  readonly #value: T;

  /** @param value - Any JSON value. */
  constructor(value: T) {
    this.#value = value;
  }

  /** The value. Do not change it, because a value that was parsed from text is frozen. */
  get value(): T {
    return this.#value;
  }

  /** The value as JSON of A2A 1.0. */
  get json(): string {
    return JSON.stringify(this.#value);
  }

  /** The JSON text in pieces, if it is large and arrived in pieces, so that writers need not join them. */
  get pieces(): readonly string[] | undefined {
    return undefined;
  }

  /** A new payload with the value that `change` returns. */
  map<U>(change: (value: T) => U): Payload<U> {
    return new Payload(change(this.value));
  }

  /** The value, for an encoder that reads it once. A parsed value is neither frozen nor cached, which is a third faster. */
  read(): T {
    return this.#value;
  }
}

/** A payload from JSON text, such as stored text. */
export class TextPayload<T> extends Payload<T> {
  readonly #text: string | readonly string[];
  /** The value, after it was first read. */
  #parsed: T | undefined;

  /** @param text - JSON of A2A 1.0: one text, or the pieces of a large one. The array of pieces is frozen. */
  constructor(text: string | readonly string[]) {
    super(undefined as T);
    this.#text = typeof text === "string" ? text : Object.freeze(text);
  }

  /** The value. It is frozen. */
  override get value(): T {
    this.#parsed ??= deepFreeze(this.#parse());
    return this.#parsed;
  }

  /** The JSON text. Pieces are joined at each read. */
  override get json(): string {
    const text = this.#text;
    return typeof text === "string" ? text : text.join("");
  }

  /** The pieces; `undefined` if the payload has only one text. */
  override get pieces(): readonly string[] | undefined {
    return typeof this.#text === "string" ? undefined : this.#text;
  }

  /** The value, parsed anew unless it was read before. */
  override read(): T {
    return this.#parsed ?? this.#parse();
  }

  #parse(): T {
    return writtenValue<T>(this.json);
  }
}

/** The port for calls: engines, client transports, proxies and test doubles implement it, and interceptors wrap it. */

/** The authenticated caller. It is never read from the fields of a request. */
export interface Principal {
  /** Stable name of the caller. `anonymous` if there is no authenticator. */
  readonly subject: string;
  /** The organization of the caller. Two organizations may have the same subject. */
  readonly organization?: string;
  /** The scopes of the caller's credentials. */
  readonly scopes?: readonly string[];
  /** Verified claims, for authorizers and agents. Only those that an agent names in `keepClaims` are stored. */
  readonly claims?: Readonly<Record<string, unknown>>;
  /** The security schemes of the card that its credentials satisfy, by name, each with the scopes that were granted. */
  readonly schemes?: Readonly<Record<string, readonly string[]>>;
  /** URLs of the agents and servers that its token is for. Absent: its credentials are for any agent of the server. */
  readonly audience?: readonly string[];
}

/** The caller if there is no authenticator. */
export const anonymous: Principal = { subject: "anonymous" };

/** The context of a call, in addition to its request. */
export interface CallContext {
  /** The caller. */
  readonly principal: Principal;
  /** Protocol version of the call, `Major.Minor`. */
  readonly version: string;
  /** URIs of the extensions that the caller requests (A2A 1.0 §4.6). */
  readonly extensions: readonly string[];
  /** Aborted when the client disconnects. Created on first read, so read it only if something waits. */
  readonly signal?: AbortSignal | undefined;
  /** For subscriptions: the caller has every event up to this `seq` (the `Last-Event-ID` header). */
  readonly after?: number | undefined;
  /**
   * At a server: waits for memory for an answer of this many bytes of JSON. The memory is released when the answer is sent or the caller
   * disconnects. A second call replaces the first; a smaller size never waits. Absent for callers in the process. Throws `Unavailable`.
   */
  reserve?(bytes: number): Promise<void>;
  /** W3C `traceparent` of the call. */
  readonly trace?: string | undefined;
  /** At a server: reads a header of the request. */
  readonly headers?: HeaderReader;
  /** At a server: IP address of the caller, if the host knows it. */
  readonly address?: string | undefined;
  /** At a server: the authorizer hides the task and the context, so they appear not to exist. Interceptors must keep this member. */
  readonly hidden?: true;
  /** At a server: the binding writes the files of `Reply.inline` into its answer piece by piece. */
  readonly streamsFiles?: true;
  /** At a server: the large files of the message, stored while it was read. An interceptor that creates a context must copy this member. */
  readonly incoming?: IncomingFilesByUrl | undefined;
  /** At a client: how the request is sent. */
  readonly outgoing?: Outgoing;
}

/** Options of one client request. The client's limits are the default. */
export interface Outgoing {
  /** For a method of an extension: its routes. The extension's client sets it. */
  readonly method?: MethodRoute;
  /** Further headers of the request, or service parameters of another binding (A2A 1.0 §3.2.6). */
  readonly headers?: Readonly<Record<string, string>>;
  /** Maximum wait for the headers of the response, in milliseconds. `false`: no limit. */
  readonly connectTimeout?: number | false;
  /** Maximum pause within the response, in milliseconds. Keep-alive comments count as data. `false`: no limit. */
  readonly idleTimeout?: number | false;
}

/** A large file of a message that is being received. */
export interface IncomingFile {
  /** A hash of its bytes, as in `blobs`. */
  readonly hash: string;
  /** Size in bytes. */
  readonly size: number;
  /** Its key in the store of files. */
  key: string;
  /** The id for the task that the message creates if it has no `taskId`: the key belongs to that task. */
  readonly taskId: string;
  /** Whether the message uses the file. Unused files are deleted at the end of the request. */
  taken: boolean;
}

/** The large files of one request, by their placeholder URLs. Clients cannot know these URLs during the request. */
export type IncomingFilesByUrl = ReadonlyMap<string, IncomingFile>;

/**
 * Writes the files of an answer into its text, for bindings that stream it. Without this, the text has references that clients cannot
 * resolve.
 */
export interface InlineFiles {
  /** The text with its files inserted, in pieces. `undefined`: it has no files. */
  pieces(text: string): AsyncIterable<string> | undefined;
}

/** Returns a header of a request by its lower-case name; `undefined` if it is absent. */
export type HeaderReader = (name: string) => string | undefined;

/** The answer of an operation with one response. It is plain data, so an interceptor can spread it. */
export interface Reply<T> {
  /** The response. */
  readonly payload: Payload<T>;
  /** URIs of the extensions that were activated (A2A 1.0 §4.6). */
  readonly extensions?: readonly string[];
  /** Writes the files of the answer into its text. Only for calls with `streamsFiles`. */
  readonly inline?: InlineFiles;
  /** For calls of the 1.1 draft (§3.2.7): the generation of each task in the payload, by the id of the task. */
  readonly generations?: ReadonlyMap<string, number>;
  /** For `GetTask` of the 1.1 draft (§3.2.8): the timeline of the task. */
  readonly timeline?: TaskTimeline;
}

/** The timeline of a task in the 1.1 draft (§3.2.8): its messages and statuses in order, and the times of its artifacts. */
export interface TaskTimeline {
  /** The payload of the timeline. If an interceptor replaces it, the timeline is omitted, because the interceptor may have removed something. */
  readonly payload: Payload<unknown>;
  /** Its `TimelineEntry` members as JSON text, oldest first. */
  readonly entries: readonly string[];
  /** Its artifacts by id. */
  readonly artifacts: ReadonlyMap<string, Span>;
}

/** The generations of a task between which an artifact grew. */
export interface Span {
  /** When it started. */
  readonly start: number;
  /** When it was complete. Absent: it still grows. */
  readonly end?: number;
}

/** One event of a stream. It is plain data, so an interceptor can spread it. */
export interface StreamItem {
  /** The event. */
  readonly payload: Payload<StreamResponse>;
  /** Number of the event in the log of its task. Absent for a direct reply. */
  readonly seq?: number | undefined;
  /** For calls of the 1.1 draft (§3.2.7): the generation of the task after this event. */
  readonly generation?: number;
}

/** The answer of a streaming operation, available once the request is accepted. */
export interface StreamReply {
  /**
   * The events in non-empty batches. Ends when the protocol ends the stream, and throws an `A2AError` if it breaks. `return()`
   * closes the stream.
   */
  readonly batches: AsyncIterable<readonly StreamItem[]>;
  /** URIs of the extensions that were activated (A2A 1.0 §4.6). */
  readonly extensions?: readonly string[];
  /** Writes the files of the events into their text. Only for calls with `streamsFiles`. */
  readonly inline?: InlineFiles;
}

/** Answers the operations of the protocol: an engine, a client's transport, or the result of an interceptor. */
export interface AgentService {
  /** Calls an operation with one response. Throws the error of the operation. */
  call<Name extends UnaryName>(
    operation: Name,
    request: UnaryOperations[Name]["request"],
    context: CallContext,
  ): Promise<Reply<UnaryOperations[Name]["response"]>>;
  /** Calls an operation with a stream. Resolves when the request is accepted, and throws the error of the operation. */
  stream<Name extends StreamName>(
    operation: Name,
    request: StreamOperations[Name]["request"],
    context: CallContext,
  ): Promise<StreamReply>;
}

/* Extensions of this project: promises about calls that a card declares (A2A 1.0 §4.6.1). They are always active. */

/**
 * URI of the extension for streams that resume: event ids are numbers in the log of the task, and a `SubscribeToTask` with `Last-Event-ID`
 * continues after that event, without sending the task first.
 */
export const resumeExtension = "urn:parley:extension:stream-resume:v1";

/**
 * URI of the extension for idempotent sends: a send with the `messageId` and content of an earlier one gets the same answer, and the agent
 * is not called again.
 */
export const idempotentSendExtension = "urn:parley:extension:idempotent-send:v1";

/**
 * URI of the extension for files in answers: requests with it get large files as bytes, not as links, if the binding can stream them
 * (JSON-RPC and REST).
 */
export const inlineFilesExtension = "urn:parley:extension:inline-files:v1";

/* The end of a stream. */

/**
 * Wraps batches. Calls `done` at their end or error, and when the reader leaves, even before the first read or after the end.
 * Calls `close` only when the reader leaves.
 */
export function finishing(
  source: StreamReply["batches"],
  done: (error?: A2AError) => void,
  close?: () => unknown,
): StreamReply["batches"] {
  return {
    [Symbol.asyncIterator]() {
      const batches = source[Symbol.asyncIterator]();
      return {
        async next() {
          try {
            const result = await batches.next();
            if (result.done === true) done();
            return result;
          } catch (thrown) {
            done(toA2AError(thrown));
            throw thrown;
          }
        },
        async return() {
          done();
          await close?.();
          await batches.return?.();
          return { done: true, value: undefined };
        },
      };
    },
  };
}
