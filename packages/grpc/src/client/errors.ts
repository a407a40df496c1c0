import type { IncomingHttpHeaders } from "node:http2";
import { A2AError } from "@parley/a2a";
import { type A2AErrorOptions, isWireErrorCode, type WireErrorCode } from "@parley/a2a/model";
import type { Codec } from "@parley/a2a/wires";
import { decodeMessage } from "../metadata.ts";
import { statusCode, type Statuses } from "../status.ts";

/** Headers of an answer, over HTTP/2 or from `fetch`. */
export type AnswerHeaders = Readonly<Record<string, string | string[] | undefined>> | IncomingHttpHeaders;

const ok = 0;

/** What the end of a call says went wrong; `undefined` when nothing did. `trailers` are those of an answer without a message in its headers. */
export function errorOf(
  statuses: Statuses,
  codec: Codec,
  url: string,
  headers: AnswerHeaders,
  trailers: AnswerHeaders | undefined,
): A2AError | undefined {
  const said = trailers?.["grpc-status"] !== undefined ? trailers : headers;
  const text = textOf(said["grpc-status"]);
  if (text === undefined || !/^\d+$/.test(text)) return unspoken(url, headers);
  const code = Number(text);
  if (code === ok) return undefined;
  const message = decodeMessage(textOf(said["grpc-message"]) ?? "");
  const details = textOf(said["grpc-status-details-bin"]);
  return sharpened(
    statuses.toError({ code, message, ...(details !== undefined && { details }) }, codec),
    code,
    message,
    textOf(said["www-authenticate"]) ?? textOf(headers["www-authenticate"]),
  );
}

/** What gRPC itself, the servers' libraries and one dialect say beyond the codes of A2A. */
function sharpened(error: A2AError, code: number, message: string, challenge: string | undefined): A2AError {
  // Servers in Python say several of them with one status, and the name in the text.
  const name = /^(\w+)Error: /.exec(message)?.[1] ?? "";
  const named = renamed[name] ?? name;
  if (isWireErrorCode(named)) return as(error, named);
  switch (code) {
    case statusCode("CANCELLED"):
      return new A2AError("ConnectionLost", message === "" ? "The server canceled the call" : message);
    case statusCode("DEADLINE_EXCEEDED"):
      return new A2AError("Timeout", message === "" ? "The server ran out of the time that it was given" : message);
    case statusCode("UNAUTHENTICATED"):
      return challenge === undefined ? error : as(error, "Unauthenticated", { challenge });
    // A method or a whole service that is not there.
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

/** As gRPC's libraries word it: "Method not found!", "unknown service a2a.v1.A2AService", "The server does not implement …". */
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

/** Whoever answers without a status does not speak gRPC, or broke off. */
function unspoken(url: string, headers: AnswerHeaders): A2AError {
  const status = Number(textOf(headers[":status"]));
  const mediaType = textOf(headers["content-type"]) ?? "";
  if (status === 200 && mediaType.startsWith("application/grpc")) {
    return new A2AError("ConnectionLost", `The answer of ${url} ended without a status`);
  }
  const challenge = textOf(headers["www-authenticate"]);
  const known = outside[status];
  if (known !== undefined) {
    return new A2AError(known, undefined, challenge === undefined ? {} : { challenge });
  }
  const what = `HTTP ${status}, ${mediaType === "" ? "no media type" : mediaType}`;
  return new A2AError("InvalidResponse", `${url} does not answer in gRPC: ${what}`, {
    metadata: { httpStatus: String(status) },
  });
}

/** What proxies and gateways say before gRPC is reached. */
const outside: Readonly<Record<number, WireErrorCode>> = {
  401: "Unauthenticated",
  403: "PermissionDenied",
  429: "TooManyRequests",
  503: "Unavailable",
};

function textOf(value: string | readonly string[] | number | undefined): string | undefined {
  return typeof value === "string" || value === undefined
    ? value
    : typeof value === "number"
      ? String(value)
      : value[0];
}
