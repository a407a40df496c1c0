import { A2AError } from "../../model/index.ts";
import {
  anonymous,
  type ByteBudget,
  type CallContext,
  type HeaderReader,
  type Principal,
  type UniversalRequest,
} from "../../protocol/index.ts";
import type { Codec } from "../../wire/codec.ts";
import type { RequestLimits } from "./host.ts";
import { nestsDeeper } from "../../base/json-text.ts";

/** What the bindings read from a request in the same way. */

const jsonTypes: ReadonlySet<string> = new Set(["application/json", "application/a2a+json"]);

function isJson(contentType: string): boolean {
  if (jsonTypes.has(contentType)) return true;
  const end = contentType.indexOf(";");
  return jsonTypes.has((end < 0 ? contentType : contentType.slice(0, end)).trim().toLowerCase());
}

/**
 * The text of the body, to be read by `parseJson`; what is refused for its headers is refused before it is read.
 * Two halves, so that a binding waits once.
 */
export function bodyText(request: UniversalRequest, limits: RequestLimits): Promise<string> {
  const contentType = request.header("content-type");
  if (contentType && !isJson(contentType)) throw unsupportedMediaType();
  return request.text(limits.bodyBytes, limits.unfinished);
}

/** The body as JSON, `undefined` for an empty one. `depth` counts from the outermost value. */
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
 * The version that a request names by header or query parameter (A2A 1.0 §3.6), without a patch part;
 * `undefined` when it names none. What is no version at all comes back as it stands, to be refused by name.
 */
export function requestedVersion(request: UniversalRequest, query: string): string | undefined {
  const text = request.header("a2a-version")?.trim() || (query === "" ? undefined : versionParameter(query));
  if (text === undefined || text === "1.0") return text;
  return /^(\d+\.\d+)(?:\.\d+)?$/.exec(text)?.[1] ?? text;
}

function versionParameter(query: string): string | undefined {
  const parameters = new URLSearchParams(query);
  // Service parameters have case-insensitive names (§3.2.6).
  return (parameters.get(versionName) ?? parameters.get(versionName.toLowerCase()))?.trim() || undefined;
}

/** The codec of the version that a request asked for, by name or by saying nothing where that is strict. */
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

const none: readonly string[] = [];

const extensionsName = "a2a-extensions";
/** Its name before 1.0. */
const formerExtensionsName = "x-a2a-extensions";

/** The URIs of `A2A-Extensions`, repeated or comma-separated (A2A 1.0 §3.2.6), under either name. */
function requestedExtensions(request: UniversalRequest): readonly string[] {
  const value = request.header(extensionsName);
  const former = request.header(formerExtensionsName);
  if (!value && !former) return none;
  const uris = `${value ?? ""},${former ?? ""}`.split(",").map((uri) => uri.trim());
  return [...new Set(uris)].filter((uri) => uri !== "");
}

/** The header that activated extensions are told in: the one that they were asked for in. */
export function extensionsHeader(request: UniversalRequest): string {
  return !request.header(extensionsName) && request.header(formerExtensionsName)
    ? formerExtensionsName
    : extensionsName;
}

/** The `seq` that a reader saw last. What cannot be one is ignored: the stream then begins with the task. */
function lastEventId(request: UniversalRequest): number | undefined {
  const value = request.header("last-event-id");
  return value !== undefined && /^\d{1,15}$/.test(value) ? Number(value) : undefined;
}

/** A call with the room that its answer takes: whoever writes the answer gives it back. */
export interface ServerContext extends CallContext {
  reserve(bytes: number): Promise<void>;
  /** Bytes that are reserved. */
  readonly reserved: number;
  /** The answer turned out to take less: so many bytes of memory. */
  shrink(bytes: number): void;
  /** Waits for the reader of the answer; rejects where it is slow, and others wait for the room that is reserved for it. */
  awaitReader(taken: Promise<void>): Promise<void>;
  /** What was reserved is out: there may be more to come. */
  release(): void;
  /** The answer is over: nothing is reserved for it any more. */
  end(): void;
}

/** `weight`: what a byte of an answer takes in memory, in bytes. */
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

/** A class for its getter: one in a literal is defined anew for each request, at thirty times the price. */
class RequestContext implements ServerContext {
  readonly principal: Principal;
  readonly version: string;
  readonly extensions: readonly string[];
  readonly headers: HeaderReader;
  declare after?: number;
  declare trace?: string;
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

  async reserve(bytes: number): Promise<void> {
    const answers = this.#answers;
    if (answers === undefined) return;
    const wanted = bytes * this.#weight;
    if (wanted <= this.reserved) {
      this.#change(wanted);
      return;
    }
    // Not what is missing alone: two who each hold a part and wait for the rest would wait for each other.
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

  /** Those whom nobody knows by name are told apart by where they are. */
  get #owner(): string {
    const { subject, organization = "" } = this.principal;
    return this.principal === anonymous
      ? `address ${this.#request.facts?.remoteAddress ?? ""}`
      : JSON.stringify([organization, subject]);
  }
}
