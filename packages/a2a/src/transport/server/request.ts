import { nestsDeeper } from "../../base/json-text.ts";
import { A2AError } from "../../model/index.ts";
import type { IncomingFiles, Principal, UniversalRequest } from "../../protocol/index.ts";
import type { Codec } from "../../wire/codec.ts";
import type { RequestLimits, ServerHost } from "./binding.ts";

/* Reads the body and the version of requests, for all bindings of HTTP. */

const jsonTypes: ReadonlySet<string> = new Set(["application/json", "application/a2a+json"]);

function isJson(contentType: string): boolean {
  if (jsonTypes.has(contentType)) return true;
  const end = contentType.indexOf(";");
  return jsonTypes.has((end < 0 ? contentType : contentType.slice(0, end)).trim().toLowerCase());
}

/** The text of the body, for `parseJson`. Rejects other media types before reading. Parsing is separate, so that a binding waits only once. */
export function bodyText(request: UniversalRequest, limits: RequestLimits): Promise<string> {
  checkMediaType(request);
  return request.text(limits.bodyBytes, limits.unfinished);
}

function checkMediaType(request: UniversalRequest): void {
  const contentType = request.header("content-type");
  if (contentType && !isJson(contentType)) throw unsupportedMediaType();
}

/** The members of a call for its large files. */
interface WithFiles {
  readonly request: UniversalRequest;
  files?: IncomingFiles;
}

/** A larger body, in bytes, is never read as a whole if large files can be extracted from it, even within `limits.bodyBytes`. */
const wholeBytes = 10 << 20;

/** The text of the body of a call. Stores large files of a message for `principal` (`blobs`) while reading, and sets `call.files`. */
export function messageText(host: ServerHost, call: WithFiles, principal: Principal): Promise<string> {
  const { request } = call;
  const { limits, receiver } = host;
  const most = Math.min(wholeBytes, limits.bodyBytes);
  if (receiver === undefined || request.read === undefined) return bodyText(request, limits);
  const length = Number(request.header("content-length") ?? Number.NaN);
  // A body without a length may be large, so read it whole only up to the limit.
  if (length <= most || (Number.isNaN(length) && request.method !== "POST")) return bodyText(request, limits);
  checkMediaType(request);
  return import("./large-body.ts").then(({ readLargeText }) => {
    const bytes = Number.isNaN(length) ? undefined : length;
    const sender = { principal, address: request.facts?.remoteAddress, services: host.services, bytes };
    return readLargeText(call, receiver, limits, { ...sender, signal: () => request.signal }, most);
  });
}

/** The body as JSON; `undefined` if the body is empty. `depth` is the maximum nesting, counted from the outermost value. */
export function parseJson(text: string, request: UniversalRequest, limits: RequestLimits, depth: number): unknown {
  if (text === "") return undefined;
  if (!request.header("content-type")) throw unsupportedMediaType();
  if (nestsDeeper(text, depth)) {
    throw new A2AError("InvalidRequest", `The request is nested deeper than ${limits.depth} levels`);
  }
  try {
    const value: unknown = JSON.parse(text);
    return value;
  } catch {
    throw new A2AError("ParseError");
  }
}

function unsupportedMediaType(): A2AError {
  return new A2AError("UnsupportedMediaType", "A request body must be application/json or application/a2a+json");
}

const versionName = "A2A-Version";

/**
 * The version in the header or query of a request (A2A 1.0 §3.6), without its patch part. Returns invalid text, so that the error can quote it.
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
