import type { CallContext, OperationName } from "@parley/a2a/protocol";
import { requestHeaders, type ClientHost } from "@parley/a2a/transport/client";
import type { Codec } from "@parley/a2a/wires";
import type { AnswerHeaders } from "./errors.ts";

/** Headers of the connection, and those that the transport sets itself. */
const own: ReadonlySet<string> = new Set([
  "accept",
  "connection",
  "content-length",
  "content-type",
  "grpc-accept-encoding",
  "grpc-encoding",
  "grpc-timeout",
  "host",
  "keep-alive",
  "proxy-connection",
  "te",
  "transfer-encoding",
  "upgrade",
]);

const extensionNames: ReadonlySet<string> = new Set(["a2a-extensions", "x-a2a-extensions"]);

export type Metadata = Record<string, string | string[]>;

/** Service parameters as metadata (A2A 1.0 §10.2). */
export async function metadataOf(
  host: ClientHost,
  codec: Codec,
  url: string,
  operation: OperationName,
  context: CallContext,
): Promise<Metadata> {
  const metadata: Metadata = {};
  for (const [name, value] of Object.entries(await requestHeaders(host, { url, operation }, context, codec))) {
    if (name.startsWith(":") || own.has(name)) continue;
    // Servers in Go do not split a list.
    metadata[name] = extensionNames.has(name) ? listOf(value) : value;
  }
  return metadata;
}

/** The extensions that were activated: some servers say so before the answer, some after it. */
export function activated(...sources: readonly (AnswerHeaders | undefined)[]): {
  readonly extensions?: readonly string[];
} {
  const values = sources.flatMap((headers) => [...extensionNames].flatMap((name) => headers?.[name] ?? []));
  const uris = values.flatMap(listOf);
  return uris.length === 0 ? {} : { extensions: [...new Set(uris)] };
}

function listOf(text: string | number): string[] {
  return String(text)
    .split(",")
    .map((uri) => uri.trim())
    .filter((uri) => uri !== "");
}
