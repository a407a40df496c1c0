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

/** The context of a call at a server. Reserves memory for the answer, which the binding releases. */
export interface ServerContext extends CallContext {
  /** The task that the request names. */
  taskId?: string;
  /** The context that the request names. */
  contextId?: string;
  /** Log fields of the call: the task and context that the request names, and the trace. */
  readonly fields: LogFields;
  streamsFiles?: true;
  incoming?: IncomingFilesByUrl;
  reserve(bytes: number): Promise<void>;
  /** Reserved bytes. */
  readonly reserved: number;
  /** Reduces the reservation to this many bytes of memory, if the answer takes less than reserved. */
  shrink(bytes: number): void;
  /** Waits for the reader of the answer. Rejects if the reader is slow and other answers need the memory reserved here. */
  awaitReader(taken: Promise<void>): Promise<void>;
  /** Releases the reserved memory after a part of the answer is sent. More parts may follow. */
  release(): void;
  /** Counts the call as an open call of a service, until `end`. */
  count(calls: OpenCalls, service: AgentService): void;
  /** Ends the answer. Releases the reserved memory, and also any later reservations. */
  end(): void;
}

/**
 * The context of a call, from the headers of its request.
 *
 * @param stream - Whether the operation responds with a stream, so that `Last-Event-ID` counts.
 * @param answers - The memory that all answers share. If absent, nothing is reserved.
 * @param weight - Memory per byte of the answer, in bytes.
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

/** A class, because a getter in an object literal is defined again for each request, which costs thirty times as much. */
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
    // Release everything before reserving again, because two calls that each hold a part and wait for the rest would deadlock.
    this.release();
    await answers.take(this.#owner, wanted, () => this.signal);
    this.reserved = wanted;
    if (!this.#over) return;
    this.release();
    throw new A2AError("Aborted", "The client disconnected");
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

  /** The owner of the reserved memory. Anonymous callers are distinguished by their IP address. */
  get #owner(): string {
    const { subject, organization = "" } = this.principal;
    return this.principal === anonymous ? `address ${this.address ?? ""}` : JSON.stringify([organization, subject]);
  }
}

const extensionsName = "a2a-extensions";
/** The name of the extensions header before 1.0. */
const formerExtensionsName = "x-a2a-extensions";

/** Maximum length of the list of URIs, in characters. A longer list is rejected, not truncated, because part of a URI could be another URI. */
const maxExtensions = 1 << 16;

const noExtensions: readonly string[] = [];

/**
 * The URIs of `A2A-Extensions`, repeated or comma-separated (A2A 1.0 §3.2.6), under either name of the header. Includes invalid and unknown
 * URIs, which no card declares.
 *
 * @throws A2AError `RequestTooLarge`.
 */
export function requestedExtensions(request: UniversalRequest): readonly string[] {
  const value = request.header(extensionsName);
  const former = request.header(formerExtensionsName);
  if (!value && !former) return noExtensions;
  if ((value?.length ?? 0) + (former?.length ?? 0) > maxExtensions) {
    throw new A2AError("RequestTooLarge", `A2A-Extensions must not exceed ${maxExtensions} characters`);
  }
  const uris = `${value ?? ""},${former ?? ""}`.split(",").map((uri) => uri.trim());
  return [...new Set(uris)].filter((uri) => uri !== "");
}

/** The name of the response header for activated extensions, which is the name that the request used. */
export function extensionsHeader(request: UniversalRequest): string {
  return !request.header(extensionsName) && request.header(formerExtensionsName)
    ? formerExtensionsName
    : extensionsName;
}

/** The `seq` of `Last-Event-ID`. Ignores other values, so that the stream begins with the task. */
function lastEventId(request: UniversalRequest): number | undefined {
  const value = request.header("last-event-id");
  return value !== undefined && /^\d{1,15}$/.test(value) ? Number(value) : undefined;
}

/** Counts calls until their answer is sent, so that a service can be released when none of its calls is open. */
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
