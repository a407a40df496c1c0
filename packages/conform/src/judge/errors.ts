import type { Json, Transport } from "../acts/format.ts";
import { isList, isMap, member } from "../acts/values.ts";

/** An error from the server (A2A 1.0 §3.3.2). */
export interface WireError {
  /** The JSON-RPC code, the HTTP status, or the name of the gRPC status. */
  readonly code: Json;
  readonly message: Json | undefined;
  readonly details: Json | undefined;
  /** `reason` of the `ErrorInfo` in the details. */
  readonly reason: string | undefined;
}

interface Kind {
  readonly code: number;
  readonly http: readonly number[];
  readonly grpc: string;
  /** Only errors defined by A2A have one. */
  readonly reason?: string;
}

const kind = (code: number, http: number | readonly number[], grpc: string, reason?: string): Kind => ({
  code,
  http: typeof http === "number" ? [http] : http,
  grpc,
  ...(reason === undefined ? {} : { reason }),
});

const unsupported = kind(-32004, 400, "FAILED_PRECONDITION", "UNSUPPORTED_OPERATION");

/** The errors by name (A2A 1.0 §5.4, ACTS §6.2). */
const kinds: Readonly<Record<string, readonly Kind[]>> = {
  TaskNotFound: [kind(-32001, 404, "NOT_FOUND", "TASK_NOT_FOUND")],
  TaskNotCancelable: [kind(-32002, 400, "FAILED_PRECONDITION", "TASK_NOT_CANCELABLE")],
  PushNotificationNotSupported: [kind(-32003, 400, "FAILED_PRECONDITION", "PUSH_NOTIFICATION_NOT_SUPPORTED")],
  UnsupportedOperation: [unsupported],
  // This name is only in ACTS. §3.3.4 requires UnsupportedOperation.
  StreamingNotSupported: [unsupported],
  ContentTypeNotSupported: [kind(-32005, 400, "INVALID_ARGUMENT", "CONTENT_TYPE_NOT_SUPPORTED")],
  InvalidAgentResponse: [kind(-32006, 500, "INTERNAL", "INVALID_AGENT_RESPONSE")],
  ExtendedAgentCardNotConfigured: [kind(-32007, 400, "FAILED_PRECONDITION", "EXTENDED_AGENT_CARD_NOT_CONFIGURED")],
  // This name is only in ACTS. §3.3.4 has two cases.
  ExtendedCardNotSupported: [
    unsupported,
    kind(-32007, 400, "FAILED_PRECONDITION", "EXTENDED_AGENT_CARD_NOT_CONFIGURED"),
  ],
  ExtensionSupportRequired: [kind(-32008, 400, "FAILED_PRECONDITION", "EXTENSION_SUPPORT_REQUIRED")],
  VersionNotSupported: [kind(-32009, 400, "FAILED_PRECONDITION", "VERSION_NOT_SUPPORTED")],
  JSONParse: [kind(-32700, 400, "INVALID_ARGUMENT")],
  InvalidRequest: [kind(-32600, 400, "INVALID_ARGUMENT")],
  MethodNotFound: [kind(-32601, [404, 405, 501], "UNIMPLEMENTED")],
  InvalidParams: [kind(-32602, [400, 422], "INVALID_ARGUMENT")],
  Internal: [kind(-32603, 500, "INTERNAL")],
};

const reasons: ReadonlySet<string | undefined> = new Set(
  Object.values(kinds).flatMap((list) => list.flatMap(({ reason }) => (reason === undefined ? [] : [reason]))),
);

/** The error in the body of a JSON-RPC or REST response (§9.5, §11.6). */
export function readError(body: Json | undefined, status: number): WireError {
  const error = member(body, "error");
  const details = member(error, "data") ?? member(error, "details");
  return wireError(member(error, "code") ?? status, member(error, "message"), details);
}

export function wireError(code: Json, message: Json | undefined, details: Json | undefined): WireError {
  const list = isList(details) ? details : [];
  const reason = member(
    list.find((detail) => member(detail, "domain") === "a2a-protocol.org"),
    "reason",
  );
  return { code, message, details, reason: typeof reason === "string" ? reason : undefined };
}

/**
 * The expected errors, if the error is not one of them. JSON-RPC has a code for each error. HTTP and gRPC use one status for several
 * errors, which the reason of the `ErrorInfo` distinguishes (§11.6).
 */
export function errorMismatch(
  types: readonly string[],
  error: WireError,
  transport: Transport,
  status: number,
): string | undefined {
  if (types.length === 0) return undefined;
  const known = types.flatMap((name) => {
    const found = kinds[name.replace(/Error$/, "")];
    if (found === undefined) throw new Error(`"${name}" is not the name of an error`);
    return found;
  });
  const fits = known.some((one) => {
    // An error not defined by A2A may have any reason not defined by A2A.
    const says = one.reason === undefined ? !reasons.has(error.reason) : error.reason === one.reason;
    switch (transport) {
      case "jsonrpc":
        return error.code === one.code && (says || error.reason === undefined);
      case "rest":
        return one.http.includes(status) && says;
      case "grpc":
        return error.code === one.grpc && says;
    }
  });
  if (fits) return undefined;
  const named = known.map((one) => {
    const code = transport === "jsonrpc" ? String(one.code) : transport === "rest" ? one.http.join(" or ") : one.grpc;
    return one.reason === undefined ? code : `${code} with reason ${one.reason}`;
  });
  return `${types.join(" or ")}: ${named.join(", or ")}`;
}

/** An error as a line of a report. */
export function showError(error: WireError, status: number): string {
  const reason = error.reason === undefined ? "" : ` ${error.reason}`;
  const code = error.code === status ? "" : ` ${JSON.stringify(error.code)}`;
  const message = typeof error.message === "string" ? `: ${error.message}` : "";
  // A gRPC status has no HTTP status.
  if (typeof error.code === "string") return `${error.code}${reason}${message}`;
  return `HTTP ${status}, error${code}${reason}${message}`;
}

/** The value that assertions on an error step see. */
export function errorValue(error: WireError): Json {
  return {
    code: error.code,
    ...(error.message === undefined ? {} : { message: error.message }),
    ...(error.details === undefined ? {} : { details: error.details }),
    ...(error.reason === undefined ? {} : { reason: error.reason }),
  };
}

export function hasError(body: Json | undefined): boolean {
  return isMap(body) && Object.hasOwn(body, "error");
}
