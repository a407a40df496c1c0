import { nestsDeeper } from "../../base/json-text.ts";
import { A2AError } from "../../model/index.ts";
import type { UniversalRequest } from "../../protocol/index.ts";
import type { Codec } from "../../wire/codec.ts";
import type { RequestLimits } from "./binding.ts";

/* What all bindings of HTTP read from a request: its body as JSON, and its version. */

const jsonTypes: ReadonlySet<string> = new Set(["application/json", "application/a2a+json"]);

function isJson(contentType: string): boolean {
  if (jsonTypes.has(contentType)) return true;
  const end = contentType.indexOf(";");
  return jsonTypes.has((end < 0 ? contentType : contentType.slice(0, end)).trim().toLowerCase());
}

/**
 * The text of the body, for `parseJson`. A request of another media type is refused before its body is read. Reading and
 * parsing are two functions, so that a binding waits only once.
 */
export function bodyText(request: UniversalRequest, limits: RequestLimits): Promise<string> {
  const contentType = request.header("content-type");
  if (contentType && !isJson(contentType)) throw unsupportedMediaType();
  return request.text(limits.bodyBytes, limits.unfinished);
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
 * The version that a request names in its header or its query (A2A 1.0 §3.6), without a patch part. `undefined` where it names
 * none. Text that is no version is returned unchanged, so that the error can quote it.
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

/**
 * The codec of a version.
 *
 * @throws A2AError `VersionNotSupported` where no codec reads that version.
 */
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
