import type { Deferred } from "../../base/async.ts";
import { deferred, type LogFields } from "../../base/index.ts";
import { A2AError } from "../../model/index.ts";
import {
  anonymous,
  taskFields,
  type AgentService,
  type ByteBudget,
  type CallContext,
  type HeaderReader,
  type IncomingFilesByUrl,
  type Principal,
  type UniversalRequest,
} from "../../protocol/index.ts";

/** The context of a call at a server. It reserves memory for the answer, which the binding releases. */
export interface ServerContext extends CallContext {
  /** The task that the request names. */
  taskId?: string;
  /** The context that the request names. */
  contextId?: string;
  /** What log lines say about the call: the task and its context as the request names them, and the trace. */
  readonly fields: LogFields;
  streamsFiles?: true;
  incoming?: IncomingFilesByUrl;
  reserve(bytes: number): Promise<void>;
  /** Bytes that are reserved. */
  readonly reserved: number;
  /** Reduces the reservation to this many bytes of memory, if the answer takes less than was reserved. */
  shrink(bytes: number): void;
  /** Waits for the reader of the answer. Rejects if the reader is slow and other answers wait for the memory reserved here. */
  awaitReader(taken: Promise<void>): Promise<void>;
  /** Releases the reserved memory: that part of the answer is sent. More parts may follow. */
  release(): void;
  /** Counts the call as one of a service, until `end`. */
  count(calls: OpenCalls, service: AgentService): void;
  /** Releases the reserved memory, and later reservations too: the answer is over. */
  end(): void;
}

/**
 * The context of a call, from the headers of its request.
 *
 * @param stream - Whether the operation responds with a stream, so that `Last-Event-ID` counts.
 * @param answers - The memory that all answers share. Absent: nothing is reserved.
 * @param weight - Memory that one byte of the answer takes, in bytes.
 */
export function requestContext(
  request: UniversalRequest,
  principal: Principal,
  version: string,
  stream: boolean,
  answers?: ByteBudget,
  weight = 1,
): ServerContext {
  const context = new RequestContext(request, principal, version, answers, weight);
  const after = stream ? lastEventId(request) : undefined;
  const trace = request.header("traceparent");
  if (after !== undefined) context.after = after;
  if (trace !== undefined) context.trace = trace;
  return context;
}

/** A class, because of its getter: a getter in an object literal is defined again for each request, which costs thirty times as much. */
class RequestContext implements ServerContext {
  readonly principal: Principal;
  readonly version: string;
  readonly extensions: readonly string[];
  readonly headers: HeaderReader;
  declare after?: number;
  declare trace?: string;
  declare taskId?: string;
  declare contextId?: string;
  declare streamsFiles?: true;
  declare incoming?: IncomingFilesByUrl;
  reserved = 0;
  readonly #request: UniversalRequest;
  readonly #answers: ByteBudget | undefined;
  readonly #weight: number;
  #over = false;
  #calls: OpenCalls | undefined;
  #service: AgentService | undefined;

  constructor(
    request: UniversalRequest,
    principal: Principal,
    version: string,
    answers: ByteBudget | undefined,
    weight: number,
  ) {
    this.principal = principal;
    this.version = version;
    this.extensions = requestedExtensions(request);
    this.headers = (name) => request.header(name);
    this.#request = request;
    this.#answers = answers;
    this.#weight = weight;
  }

  get signal(): AbortSignal {
    return this.#request.signal;
  }

  get fields(): LogFields {
    return taskFields(this);
  }

  get address(): string | undefined {
    return this.#request.facts?.remoteAddress;
  }

  async reserve(bytes: number): Promise<void> {
    const answers = this.#answers;
    if (answers === undefined) return;
    const wanted = bytes * this.#weight;
    if (wanted <= this.reserved) {
      this.#change(wanted);
      return;
    }
    // All of it again, not the difference: two calls that each hold a part and wait for the rest would wait for each other.
    this.release();
    await answers.take(this.#owner, wanted, () => this.signal);
    this.reserved = wanted;
    if (!this.#over) return;
    this.release();
    throw new A2AError("Aborted", "The caller is gone");
  }

  shrink(bytes: number): void {
    if (bytes < this.reserved) this.#change(bytes);
  }

  awaitReader(taken: Promise<void>): Promise<void> {
    return this.reserved === 0 || this.#answers === undefined ? taken : this.#answers.awaitReader(taken);
  }

  release(): void {
    if (this.reserved > 0) this.#change(0);
  }

  count(calls: OpenCalls, service: AgentService): void {
    calls.begin(service);
    this.#calls = calls;
    this.#service = service;
  }

  end(): void {
    if (this.#service !== undefined) this.#calls?.end(this.#service);
    this.#service = undefined;
    this.#over = true;
    this.release();
  }

  #change(bytes: number): void {
    const before = this.reserved;
    this.reserved = bytes;
    this.#answers?.change(this.#owner, before, bytes);
  }

  /** Who the memory is counted for. Callers without a name are told apart by their IP address. */
  get #owner(): string {
    const { subject, organization = "" } = this.principal;
    return this.principal === anonymous ? `address ${this.address ?? ""}` : JSON.stringify([organization, subject]);
  }
}

const extensionsName = "a2a-extensions";
/** Its name before 1.0. */
const formerExtensionsName = "x-a2a-extensions";

/** Longest list of URIs that is read, in characters. A part of a URI could be another URI, so a longer one is not cut. */
const maxExtensions = 1 << 16;

const noExtensions: readonly string[] = [];

/**
 * The URIs of `A2A-Extensions`, repeated or comma-separated (A2A 1.0 §3.2.6), under either name of the header. What is not a URI, or unknown, is
 * among them: no card declares it.
 *
 * @throws A2AError `RequestTooLarge`.
 */
export function requestedExtensions(request: UniversalRequest): readonly string[] {
  const value = request.header(extensionsName);
  const former = request.header(formerExtensionsName);
  if (!value && !former) return noExtensions;
  if ((value?.length ?? 0) + (former?.length ?? 0) > maxExtensions) {
    throw new A2AError("RequestTooLarge", `A2A-Extensions may take ${maxExtensions} characters`);
  }
  const uris = `${value ?? ""},${former ?? ""}`.split(",").map((uri) => uri.trim());
  return [...new Set(uris)].filter((uri) => uri !== "");
}

/** The name of the response header for activated extensions: the name that the request used. */
export function extensionsHeader(request: UniversalRequest): string {
  return !request.header(extensionsName) && request.header(formerExtensionsName)
    ? formerExtensionsName
    : extensionsName;
}

/** The `seq` of `Last-Event-ID`. A value that is no `seq` is ignored: the stream then begins with the task. */
function lastEventId(request: UniversalRequest): number | undefined {
  const value = request.header("last-event-id");
  return value !== undefined && /^\d{1,15}$/.test(value) ? Number(value) : undefined;
}

/** Counts calls from their begin until their answer is sent, so that a service can be released when none of its calls is open. */
export class OpenCalls {
  readonly #open = new Map<AgentService, { count: number; whenNone?: Deferred<void> }>();

  begin(service: AgentService): void {
    const open = this.#open.get(service);
    if (open === undefined) this.#open.set(service, { count: 1 });
    else open.count += 1;
  }

  end(service: AgentService): void {
    const open = this.#open.get(service);
    if (open === undefined || --open.count > 0) return;
    this.#open.delete(service);
    open.whenNone?.resolve();
  }

  /** Resolves when no call of the service is open. */
  async ended(service: AgentService): Promise<void> {
    const open = this.#open.get(service);
    if (open !== undefined) await (open.whenNone ??= deferred()).promise;
  }
}
