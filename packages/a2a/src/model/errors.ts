/**
 * The one error class of Parley and the one table that maps it to each binding (A2A 1.0 §3.3.2, §5.4).
 * A message and the details travel to the client; `cause` never does.
 */

interface ErrorRow {
  /** JSON-RPC code. */
  readonly jsonrpc: number;
  /** HTTP status of the REST binding. */
  readonly http: number;
  /** Canonical status name, as gRPC and `google.rpc.Status` spell it. */
  readonly status: string;
  /** Defined by A2A: the `ErrorInfo.reason` of its domain is the code in upper snake case (`reasonOf`, §11.6). */
  readonly named?: true;
  /** What a client reads when nobody wrote something better. */
  readonly message: string;
  /** Answered by HTTP itself before JSON-RPC is reached: that binding then uses this HTTP status too. */
  readonly outside?: true;
}

/** Names of what can go wrong on the wire: stable, the same on every binding. */
export type WireErrorCode =
  | "TaskNotFound"
  | "TaskNotCancelable"
  | "PushNotificationNotSupported"
  | "UnsupportedOperation"
  | "ContentTypeNotSupported"
  | "InvalidAgentResponse"
  | "ExtendedAgentCardNotConfigured"
  | "ExtensionSupportRequired"
  | "VersionNotSupported"
  | "TaskGenerationMismatch"
  | "ParseError"
  | "InvalidRequest"
  | "MethodNotFound"
  | "InvalidParams"
  | "InternalError"
  | "Unauthenticated"
  | "PermissionDenied"
  | "MethodNotAllowed"
  | "RequestTooLarge"
  | "UnsupportedMediaType"
  | "TooManyRequests"
  | "Unavailable";

export const wireErrors: Readonly<Record<WireErrorCode, ErrorRow>> = {
  TaskNotFound: {
    jsonrpc: -32001,
    http: 404,
    status: "NOT_FOUND",
    named: true,
    message: "Task not found",
  },
  TaskNotCancelable: {
    jsonrpc: -32002,
    http: 400,
    status: "FAILED_PRECONDITION",
    named: true,
    message: "Task cannot be canceled",
  },
  PushNotificationNotSupported: {
    jsonrpc: -32003,
    http: 400,
    status: "FAILED_PRECONDITION",
    named: true,
    message: "Push notifications are not supported",
  },
  UnsupportedOperation: {
    jsonrpc: -32004,
    http: 400,
    status: "FAILED_PRECONDITION",
    named: true,
    message: "This operation is not supported",
  },
  ContentTypeNotSupported: {
    jsonrpc: -32005,
    http: 400,
    status: "INVALID_ARGUMENT",
    named: true,
    message: "Content type not supported",
  },
  InvalidAgentResponse: {
    jsonrpc: -32006,
    http: 500,
    status: "INTERNAL",
    named: true,
    message: "The agent gave an invalid response",
  },
  ExtendedAgentCardNotConfigured: {
    jsonrpc: -32007,
    http: 400,
    status: "FAILED_PRECONDITION",
    named: true,
    message: "No extended agent card is configured",
  },
  ExtensionSupportRequired: {
    jsonrpc: -32008,
    http: 400,
    status: "FAILED_PRECONDITION",
    named: true,
    message: "A required extension was not requested",
  },
  VersionNotSupported: {
    jsonrpc: -32009,
    http: 400,
    status: "FAILED_PRECONDITION",
    named: true,
    message: "Protocol version not supported",
  },
  // Of the 1.1 draft.
  TaskGenerationMismatch: {
    jsonrpc: -32010,
    http: 409,
    status: "ABORTED",
    named: true,
    message: "The task has moved on",
  },
  ParseError: { jsonrpc: -32700, http: 400, status: "INVALID_ARGUMENT", message: "Invalid JSON payload" },
  InvalidRequest: {
    jsonrpc: -32600,
    http: 400,
    status: "INVALID_ARGUMENT",
    message: "Request payload validation error",
  },
  MethodNotFound: { jsonrpc: -32601, http: 404, status: "UNIMPLEMENTED", message: "Method not found" },
  InvalidParams: { jsonrpc: -32602, http: 400, status: "INVALID_ARGUMENT", message: "Invalid parameters" },
  InternalError: { jsonrpc: -32603, http: 500, status: "INTERNAL", message: "Internal error" },
  Unauthenticated: {
    jsonrpc: -32603,
    http: 401,
    status: "UNAUTHENTICATED",
    message: "Authentication required",
    outside: true,
  },
  PermissionDenied: { jsonrpc: -32603, http: 403, status: "PERMISSION_DENIED", message: "Not allowed", outside: true },
  MethodNotAllowed: {
    jsonrpc: -32601,
    http: 405,
    status: "UNIMPLEMENTED",
    message: "HTTP method not allowed",
    outside: true,
  },
  RequestTooLarge: {
    jsonrpc: -32600,
    http: 413,
    status: "INVALID_ARGUMENT",
    message: "Request body too large",
    outside: true,
  },
  // The specification has no code for the media type of a request; this is its code for those of parts.
  UnsupportedMediaType: {
    jsonrpc: -32005,
    http: 415,
    status: "INVALID_ARGUMENT",
    message: "Media type of the request not supported",
    outside: true,
  },
  TooManyRequests: {
    jsonrpc: -32603,
    http: 429,
    status: "RESOURCE_EXHAUSTED",
    message: "Too many requests",
    outside: true,
  },
  Unavailable: {
    jsonrpc: -32603,
    http: 503,
    status: "UNAVAILABLE",
    message: "Temporarily unavailable",
    outside: true,
  },
};

/**
 * Names of what can go wrong at the client alone:
 * `ConnectionFailed` nothing was answered, `ConnectionLost` the answer broke off, `Timeout` a limit of the caller's passed,
 * `Aborted` the caller's signal, `InvalidResponse` the peer does not speak the protocol.
 */
export type ClientErrorCode = "ConnectionFailed" | "ConnectionLost" | "Timeout" | "Aborted" | "InvalidResponse";

export type A2AErrorCode = WireErrorCode | ClientErrorCode;

/** The code as `google.rpc.ErrorInfo` spells it: `TASK_NOT_FOUND`. */
export function reasonOf(code: string): string {
  return code.replaceAll(/\B[A-Z]/g, "_$&").toUpperCase();
}

export function isWireErrorCode(code: string): code is WireErrorCode {
  return Object.hasOwn(wireErrors, code);
}

/** One thing wrong with one field of a request; `field` is a path such as `message.parts[0].text`. */
export interface FieldViolation {
  readonly field: string;
  readonly description: string;
}

export interface A2AErrorOptions {
  /** Which fields are wrong, and how (`google.rpc.BadRequest`). */
  readonly fields?: readonly FieldViolation[];
  /** Goes out as `ErrorInfo.metadata`: short strings, nothing secret. */
  readonly metadata?: Readonly<Record<string, string>>;
  /** For `TooManyRequests` and `Unavailable`: when to come back, in seconds. */
  readonly retryAfter?: number;
  /** For `Unauthenticated`: the value of `WWW-Authenticate`. */
  readonly challenge?: string;
  /** Detail objects of a peer's error that are of no type known here, as they came. */
  readonly details?: readonly unknown[];
  /** For the operator's log; stays in this process. */
  readonly cause?: unknown;
}

/** Everything that Parley throws at its users, on both sides of the wire. Compare `code`, never the text. */
export class A2AError extends Error {
  override readonly name = "A2AError";
  readonly code: A2AErrorCode;
  readonly fields: readonly FieldViolation[];
  readonly metadata: Readonly<Record<string, string>>;
  readonly retryAfter: number | undefined;
  readonly challenge: string | undefined;
  readonly details: readonly unknown[];

  constructor(code: A2AErrorCode, message?: string, options: A2AErrorOptions = {}) {
    super(
      message ?? (isWireErrorCode(code) ? wireErrors[code].message : code),
      options.cause === undefined ? undefined : { cause: options.cause },
    );
    this.code = code;
    this.fields = options.fields ?? [];
    this.metadata = options.metadata ?? {};
    this.retryAfter = options.retryAfter;
    this.challenge = options.challenge;
    this.details = options.details ?? [];
  }
}

/** The error of a request whose fields are wrong. Default message: it names the first of them, for whoever reads no further. */
export function invalidParams(
  fields: readonly FieldViolation[],
  message: string = withFields(wireErrors.InvalidParams.message, fields),
): A2AError {
  return new A2AError("InvalidParams", message, { fields });
}

/** A sentence that says what is wrong with the first field, and how many more there are. */
export function withFields(start: string, [first, ...others]: readonly FieldViolation[]): string {
  if (first === undefined) return start;
  const more = others.length === 0 ? "" : ` (and ${others.length} more)`;
  return `${start}: ${first.field === "" ? "it" : first.field} ${first.description}${more}`;
}

/**
 * Any thrown value as an error that may be shown to a client: one of ours as it is,
 * anything else an `InternalError` with a sentence that says nothing of the inside (D12).
 */
export function toA2AError(thrown: unknown): A2AError {
  return thrown instanceof A2AError ? thrown : new A2AError("InternalError", undefined, { cause: thrown });
}
