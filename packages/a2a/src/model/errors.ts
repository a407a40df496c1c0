/**
 * The one error class of Parley and the one table that maps it to each binding (A2A 1.0 §3.3.2, §5.4).
 * A message and the details travel to the client; `cause` never does.
 */

interface ErrorRow {
  /** JSON-RPC code. */
  readonly jsonrpc: number;
  /** HTTP status of the REST binding. */
  readonly http: number;
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

function row(jsonrpc: number, http: number, message: string): ErrorRow {
  return { jsonrpc, http, message };
}

function outside(jsonrpc: number, http: number, message: string): ErrorRow {
  return { jsonrpc, http, message, outside: true };
}

export const wireErrors: Readonly<Record<WireErrorCode, ErrorRow>> = {
  TaskNotFound: row(-32001, 404, "Task not found"),
  TaskNotCancelable: row(-32002, 400, "Task cannot be canceled"),
  PushNotificationNotSupported: row(-32003, 400, "Push notifications are not supported"),
  UnsupportedOperation: row(-32004, 400, "This operation is not supported"),
  ContentTypeNotSupported: row(-32005, 400, "Content type not supported"),
  InvalidAgentResponse: row(-32006, 500, "The agent gave an invalid response"),
  ExtendedAgentCardNotConfigured: row(-32007, 400, "No extended agent card is configured"),
  ExtensionSupportRequired: row(-32008, 400, "A required extension was not requested"),
  VersionNotSupported: row(-32009, 400, "Protocol version not supported"),
  // Of the 1.1 draft.
  TaskGenerationMismatch: row(-32010, 409, "The task has moved on"),
  ParseError: row(-32700, 400, "Invalid JSON payload"),
  InvalidRequest: row(-32600, 400, "Request payload validation error"),
  MethodNotFound: row(-32601, 404, "Method not found"),
  InvalidParams: row(-32602, 400, "Invalid parameters"),
  InternalError: row(-32603, 500, "Internal error"),
  Unauthenticated: outside(-32603, 401, "Authentication required"),
  PermissionDenied: outside(-32603, 403, "Not allowed"),
  MethodNotAllowed: outside(-32601, 405, "HTTP method not allowed"),
  RequestTooLarge: outside(-32600, 413, "Request body too large"),
  // The specification has no code for the media type of a request; this is its code for those of parts.
  UnsupportedMediaType: outside(-32005, 415, "Media type of the request not supported"),
  TooManyRequests: outside(-32603, 429, "Too many requests"),
  Unavailable: outside(-32603, 503, "Temporarily unavailable"),
};

export const wireErrorCodes: readonly WireErrorCode[] = Object.keys(wireErrors) as WireErrorCode[];

/** The error that HTTP itself answers with a status. */
export function outsideCode(status: number): WireErrorCode | undefined {
  return wireErrorCodes.find((code) => wireErrors[code].outside === true && wireErrors[code].http === status);
}

/** Canonical status names, as gRPC and `google.rpc.Status` spell them. Apart from the table: JSON-RPC has no use for them. */
export const wireStatuses: Readonly<Record<WireErrorCode, string>> = {
  TaskNotFound: "NOT_FOUND",
  TaskNotCancelable: "FAILED_PRECONDITION",
  PushNotificationNotSupported: "FAILED_PRECONDITION",
  UnsupportedOperation: "FAILED_PRECONDITION",
  ContentTypeNotSupported: "INVALID_ARGUMENT",
  InvalidAgentResponse: "INTERNAL",
  ExtendedAgentCardNotConfigured: "FAILED_PRECONDITION",
  ExtensionSupportRequired: "FAILED_PRECONDITION",
  VersionNotSupported: "FAILED_PRECONDITION",
  TaskGenerationMismatch: "ABORTED",
  ParseError: "INVALID_ARGUMENT",
  InvalidRequest: "INVALID_ARGUMENT",
  MethodNotFound: "UNIMPLEMENTED",
  InvalidParams: "INVALID_ARGUMENT",
  InternalError: "INTERNAL",
  Unauthenticated: "UNAUTHENTICATED",
  PermissionDenied: "PERMISSION_DENIED",
  MethodNotAllowed: "UNIMPLEMENTED",
  RequestTooLarge: "INVALID_ARGUMENT",
  UnsupportedMediaType: "INVALID_ARGUMENT",
  TooManyRequests: "RESOURCE_EXHAUSTED",
  Unavailable: "UNAVAILABLE",
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
  readonly retryAfter?: number | undefined;
  /** For `Unauthenticated`: the value of `WWW-Authenticate`. */
  readonly challenge?: string | undefined;
  /** Detail objects of a peer's error that are of no type known here, as they came. */
  readonly details?: readonly unknown[];
  /** For the operator's log; stays in this process. */
  readonly cause?: unknown;
}

/** Everything that Parley throws at its users, on both sides of the wire. Compare `code`, never the text. */
export class A2AError extends Error {
  override readonly name = "A2AError";
  declare readonly code: A2AErrorCode;
  declare readonly fields: readonly FieldViolation[];
  declare readonly metadata: Readonly<Record<string, string>>;
  declare readonly retryAfter: number | undefined;
  declare readonly challenge: string | undefined;
  declare readonly details: readonly unknown[];

  constructor(code: A2AErrorCode, message?: string, options: A2AErrorOptions = {}) {
    super(
      message ?? (wireErrors as Partial<Record<string, ErrorRow>>)[code]?.message ?? code,
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

/** Whether it is an error of ours with one of these codes. */
export function hasCode<Code extends A2AErrorCode>(
  thrown: unknown,
  ...codes: readonly Code[]
): thrown is A2AError & { readonly code: Code } {
  return thrown instanceof A2AError && (codes as readonly A2AErrorCode[]).includes(thrown.code);
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
