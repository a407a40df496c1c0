import type { CallContext, OperationName } from "@parley/a2a/protocol";
import { type ClientHost, type Codec, requestHeaders } from "@parley/a2a/transport";
import type { AnswerHeaders } from "./errors.ts";

/** Headers that belong to the connection, or that gRPC sets itself. */
const own: ReadonlySet<string> = new Set([
  "accept",
  "connection",
  "content-length",
  "content-type",
  "host",
  "keep-alive",
  "proxy-connection",
  "te",
  "transfer-encoding",
  "upgrade",
]);

/** Service parameters as metadata (A2A 1.0 §10.2). */
export async function metadataOf(
  host: ClientHost,
  codec: Codec,
  url: string,
  operation: OperationName,
  context: CallContext,
): Promise<Record<string, string | string[]>> {
  const headers = await requestHeaders(host, { url, operation }, { ...context, version: codec.version });
  const metadata: Record<string, string | string[]> = {};
  for (const [name, value] of Object.entries(headers)) {
    if (own.has(name)) continue;
    // Servers in Go do not split a list.
    if (name === "a2a-extensions") metadata[extensionsName(codec)] = listOf(value);
    else metadata[name] = value;
  }
  return metadata;
}

function extensionsName({ version }: Codec): string {
  return version < "1" ? "x-a2a-extensions" : "a2a-extensions";
}

/** The extensions that were activated: some servers say so before the answer, some after it. */
export function activated(...sources: readonly (AnswerHeaders | undefined)[]): {
  readonly extensions?: readonly string[];
} {
  const uris = sources.flatMap((headers) =>
    ["a2a-extensions", "x-a2a-extensions"].flatMap((name) => {
      const value = headers?.[name];
      return value === undefined ? [] : [value].flat().flatMap(listOf);
    }),
  );
  return uris.length === 0 ? {} : { extensions: [...new Set(uris)] };
}

function listOf(text: string | number): string[] {
  return String(text)
    .split(",")
    .map((uri) => uri.trim())
    .filter((uri) => uri !== "");
}
