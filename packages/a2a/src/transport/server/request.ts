import type { LogFields } from "../../base/index.ts";
import { A2AError } from "../../model/index.ts";
import {
  anonymous,
  taskFields,
  type ByteBudget,
  type CallContext,
  type HeaderReader,
  type IncomingFilesByUrl,
  type Principal,
  type UniversalRequest,
  type IncomingFiles,
} from "../../protocol/index.ts";
import { nestsDeeper } from "../../base/json-text.ts";
import type { Codec } from "../../wire/codec.ts";
import type { RequestLimits, ServerHost } from "./binding.ts";

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
  /** Reduces the reservation to this many bytes of memory, where the answer takes less than was reserved. */
  shrink(bytes: number): void;
  /** Waits for the reader of the answer. Rejects where the reader is slow and other answers wait for the memory reserved here. */
  awaitReader(taken: Promise<void>): Promise<void>;
  /** Releases the reserved memory: that part of the answer is sent. More parts may follow. */
  release(): void;
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

  end(): void {
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
 * The URIs of `A2A-Extensions`, repeated or comma-separated (A2A 1.0 §3.2.6), under either name of the header. What is no URI, or unknown, is
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

/* What all bindings of HTTP read from a request: its body as JSON, and its version. */

const jsonTypes: ReadonlySet<string> = new Set(["application/json", "application/a2a+json"]);

function isJson(contentType: string): boolean {
  if (jsonTypes.has(contentType)) return true;
  const end = contentType.indexOf(";");
  return jsonTypes.has((end < 0 ? contentType : contentType.slice(0, end)).trim().toLowerCase());
}

/** The text of the body, for `parseJson`. Refuses other media types before reading. Two functions, so that a binding waits only once. */
export function bodyText(request: UniversalRequest, limits: RequestLimits): Promise<string> {
  checkMediaType(request);
  return request.text(limits.bodyBytes, limits.unfinished);
}

function checkMediaType(request: UniversalRequest): void {
  const contentType = request.header("content-type");
  if (contentType && !isJson(contentType)) throw unsupportedMediaType();
}

/** What of a call has its large files. */
interface WithFiles {
  readonly request: UniversalRequest;
  files?: IncomingFiles;
}

/** A body over this size in bytes is never read whole where large files can be taken out of it, whatever `limits.bodyBytes` is. */
const wholeBytes = 10 << 20;

/** The text of the body of a call. Large files of a message are stored meanwhile for `principal` (`blobs`), and `call.files` has them. */
export function messageText(host: ServerHost, call: WithFiles, principal: Principal): Promise<string> {
  const { request } = call;
  const { limits, receiver } = host;
  const most = Math.min(wholeBytes, limits.bodyBytes);
  if (receiver === undefined || request.read === undefined) return bodyText(request, limits);
  const length = Number(request.header("content-length") ?? Number.NaN);
  // Without a length it may be large: it is read whole up to the limit.
  if (length <= most || (Number.isNaN(length) && request.method !== "POST")) return bodyText(request, limits);
  checkMediaType(request);
  return import("./large-body.ts").then(({ readLargeText }) => {
    const bytes = Number.isNaN(length) ? undefined : length;
    const sender = { principal, address: request.facts?.remoteAddress, services: host.services, bytes };
    return readLargeText(call, receiver, limits, { ...sender, signal: () => request.signal }, most);
  });
}

/** The body as JSON; `undefined` where it is empty. `depth` is the deepest nesting, counted from the outermost value. */
export function parseJson(text: string, request: UniversalRequest, limits: RequestLimits, depth: number): unknown {
  if (text === "") return undefined;
  if (!request.header("content-type")) throw unsupportedMediaType();
  if (nestsDeeper(text, depth)) {
    throw new A2AError("InvalidRequest", `The request is nested deeper than ${limits.depth} levels`);
  }
  try {
    return JSON.parse(text) as unknown;
  } catch {
    throw new A2AError("ParseError");
  }
}

function unsupportedMediaType(): A2AError {
  return new A2AError("UnsupportedMediaType", "A request body must be application/json or application/a2a+json");
}

const versionName = "A2A-Version";

/**
 * The version in the header or query of a request (A2A 1.0 §3.6), without its patch part. Invalid text is returned for the error to quote.
 */
export function requestedVersion(request: UniversalRequest, query: string): string | undefined {
  const text = request.header("a2a-version")?.trim() || (query === "" ? undefined : versionParameter(query));
  if (text === undefined || text === "1.0") return text;
  return /^(\d+\.\d+)(?:\.\d+)?$/.exec(text)?.[1] ?? text;
}

function versionParameter(query: string): string | undefined {
  const parameters = new URLSearchParams(query);
  // Names of service parameters are case-insensitive (A2A 1.0 §3.2.6).
  return (parameters.get(versionName) ?? parameters.get(versionName.toLowerCase()))?.trim() || undefined;
}

/** The codec of a version. Throws `VersionNotSupported`. */
export function codecOf<T extends Pick<Codec, "version" | "aliases">>(codecs: readonly T[], version: string): T {
  const codec = codecs.find((each) => each.version === version || each.aliases?.includes(version));
  if (codec !== undefined) return codec;
  const supported = codecs.map((each) => each.version).join(", ");
  throw new A2AError(
    "VersionNotSupported",
    `Protocol version ${JSON.stringify(version.slice(0, 32))} is not supported here; supported: ${supported}`,
    { metadata: { supportedVersions: supported } },
  );
}
