/** Headers of a call: service parameters go out as metadata, errors and extensions come back in headers and trailers. */

import type { IncomingHttpHeaders } from "node:http2";
import { A2AError, type A2AErrorOptions } from "@parley/a2a/model";
import { isWireErrorCode, type WireErrorCode } from "@parley/a2a/internal/model/index";
import type { CallContext, OperationName } from "@parley/a2a/internal/protocol/index";
import type { ClientHost } from "@parley/a2a/internal/transport/client/binding";
import { requestHeaders } from "@parley/a2a/internal/transport/client/request";
import type { Codec } from "@parley/a2a/internal/wire/codec";
import { retryAfterOf } from "@parley/a2a/internal/base/http";
import { decodeMessage } from "../metadata.ts";
import type { MessageType } from "../protobuf/types.ts";
import { statusCode, type Statuses } from "../status.ts";

const transportHeaders: ReadonlySet<string> = new Set([
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

/** An agent that a client calls. */
export interface Callee {
  readonly codec: Codec;
  readonly host: ClientHost;
  readonly statuses: Statuses;
  /** Its address, for errors. */
  readonly url: string;
}

/** The service parameters as metadata (A2A 1.0 §10.2). */
export async function metadataOf(
  { host, codec, url }: Callee,
  operation: OperationName,
  context: CallContext,
): Promise<Metadata> {
  const metadata: Metadata = {};
  for (const [name, value] of Object.entries(await requestHeaders(host, { url, operation }, context, codec))) {
    if (name.startsWith(":") || transportHeaders.has(name)) continue;
    metadata[name] = extensionNames.has(name) ? valuesOf(value) : value;
  }
  return metadata;
}

/** Maximum number of values of one header. Node ends calls with more than 128 headers, and counts each value. */
const maxValues = 64;

/** One value per URI, because the SDK for Go does not split lists; a list if there are many. */
function valuesOf(list: string): string | string[] {
  const uris = listOf(list);
  return uris.length > maxValues ? uris.join(", ") : uris;
}

/** The activated extensions. Some servers send them in the headers, some in the trailers. */
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

/** Headers of an answer, over HTTP/2 or from `fetch`. */
export type AnswerHeaders = Readonly<Record<string, string | string[] | undefined>> | IncomingHttpHeaders;

const ok = 0;

/**
 * The error of an ended call; `undefined` after success. Without a message, `headers` are the trailers. `request`: the
 * type of the message that was sent.
 */
export function errorOf(
  { statuses, codec, url, host }: Callee,
  headers: AnswerHeaders,
  trailers: AnswerHeaders | undefined,
  request: MessageType,
): A2AError | undefined {
  const end = trailers?.["grpc-status"] !== undefined ? trailers : headers;
  const text = textOf(end["grpc-status"]);
  if (text === undefined || !/^\d+$/.test(text)) return withoutStatus(url, headers, host.clock.now());
  const code = Number(text);
  if (code === ok) return undefined;
  const message = decodeMessage(textOf(end["grpc-message"]) ?? "");
  const details = textOf(end["grpc-status-details-bin"]);
  return refined(
    statuses.toError({ code, message, ...(details !== undefined && { details }) }, codec, request),
    code,
    message,
    textOf(end["www-authenticate"]) ?? textOf(headers["www-authenticate"]),
  );
}

/** Refines an error by conventions of gRPC, server libraries and the SDK for Python. */
function refined(error: A2AError, code: number, message: string, challenge: string | undefined): A2AError {
  // The SDK for Python uses one status for several errors, and puts the name of the error into the text.
  const name = /^(\w+)Error: /.exec(message)?.[1] ?? "";
  const named = renamed[name] ?? name;
  if (isWireErrorCode(named)) return as(error, named);
  switch (code) {
    case statusCode("CANCELLED"):
      return new A2AError("ConnectionLost", message === "" ? "The server canceled the call" : message);
    case statusCode("DEADLINE_EXCEEDED"):
      return new A2AError("Timeout", message === "" ? "The server did not answer before the deadline" : message);
    case statusCode("UNAUTHENTICATED"):
      return challenge === undefined ? error : as(error, "Unauthenticated", { challenge });
    case statusCode("PERMISSION_DENIED"):
      return challenge === undefined ? error : as(error, "PermissionDenied", { challenge });
    // The method or the whole service may be unknown.
    case statusCode("UNIMPLEMENTED"):
      return error.code === "UnsupportedOperation" && error.details.length === 0 && isUnrouted(message)
        ? as(error, "MethodNotFound")
        : error;
    default:
      return error;
  }
}

const renamed: Readonly<Record<string, WireErrorCode>> = {
  AuthenticatedExtendedCardNotConfigured: "ExtendedAgentCardNotConfigured",
};

/**
 * Texts of the gRPC libraries: "Method not found!", "unknown service a2a.v1.A2AService", "The server does not implement
 * …".
 */
function isUnrouted(message: string): boolean {
  return /^$|method not found|unknown (service|method)|does not implement/i.test(message);
}

function as(error: A2AError, code: WireErrorCode, options: A2AErrorOptions = {}): A2AError {
  const { fields, metadata, details, retryAfter } = error;
  return new A2AError(code, error.message, {
    fields,
    metadata,
    details,
    ...(retryAfter !== undefined && { retryAfter }),
    ...options,
  });
}

/** The error of an answer without a status: it is not gRPC, or incomplete. */
function withoutStatus(url: string, headers: AnswerHeaders, now: number): A2AError {
  const status = Number(textOf(headers[":status"]));
  const mediaType = textOf(headers["content-type"]) ?? "";
  if (status === 200 && mediaType.startsWith("application/grpc")) {
    return new A2AError("ConnectionLost", `The answer of ${url} ended without a status`);
  }
  const challenge = textOf(headers["www-authenticate"]);
  const known = proxyErrors[status];
  if (known !== undefined) {
    return new A2AError(known, undefined, { challenge, retryAfter: retryAfterOf(textOf(headers["retry-after"]), now) });
  }
  const what = `HTTP ${status}, ${mediaType === "" ? "no media type" : mediaType}`;
  return new A2AError("InvalidResponse", `${url} does not answer in gRPC: ${what}`, {
    metadata: { httpStatus: String(status) },
  });
}

/** Errors of proxies and gateways, by HTTP status. */
const proxyErrors: Readonly<Record<number, WireErrorCode>> = {
  401: "Unauthenticated",
  403: "PermissionDenied",
  429: "TooManyRequests",
  503: "Unavailable",
};

/** The first value of a header. */
export function textOf(value: string | readonly string[] | number | undefined): string | undefined {
  return typeof value === "string" || value === undefined
    ? value
    : typeof value === "number"
      ? String(value)
      : value[0];
}
