/**
 * The error class, and the table that maps its codes to each binding (A2A 1.0 §3.3.2, §5.4). Message and details are sent to the client;
 * `cause` never is.
 */

interface ErrorRow {
  /** JSON-RPC code. */
  readonly jsonrpc: number;
  /** HTTP status of the REST binding. */
  readonly http: number;
  /** Default message. */
  readonly message: string;
  /** Whether the JSON-RPC binding answers with this HTTP status too, because the request never reaches JSON-RPC. */
  readonly outside?: true;
}

/** Codes of errors that a server answers with. They are stable and the same on every binding. */
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

/** How each code is sent: its JSON-RPC code, its HTTP status and its default message (A2A 1.0 §5.4). */
export const wireErrors: Readonly<Record<WireErrorCode, ErrorRow>> = {
  TaskNotFound: row(-32001, 404, "Task not found"),
  TaskNotCancelable: row(-32002, 400, "Task cannot be canceled"),
  PushNotificationNotSupported: row(-32003, 400, "Push notifications are not supported"),
  UnsupportedOperation: row(-32004, 400, "This operation is not supported"),
  ContentTypeNotSupported: row(-32005, 400, "Content type not supported"),
  InvalidAgentResponse: row(-32006, 500, "Invalid agent response"),
  ExtendedAgentCardNotConfigured: row(-32007, 400, "No extended agent card is configured"),
  ExtensionSupportRequired: row(-32008, 400, "A required extension was not requested"),
  VersionNotSupported: row(-32009, 400, "Protocol version not supported"),
  // Of the 1.1 draft.
  TaskGenerationMismatch: row(-32010, 409, "Task has moved on"),
  ParseError: row(-32700, 400, "Invalid JSON payload"),
  InvalidRequest: row(-32600, 400, "Request payload validation error"),
  MethodNotFound: row(-32601, 404, "Method not found"),
  InvalidParams: row(-32602, 400, "Invalid parameters"),
  InternalError: row(-32603, 500, "Internal error"),
  Unauthenticated: outside(-32603, 401, "Authentication required"),
  PermissionDenied: outside(-32603, 403, "Not allowed"),
  MethodNotAllowed: outside(-32601, 405, "HTTP method not allowed"),
  RequestTooLarge: outside(-32600, 413, "Request body too large"),
  // The specification has no code for the media type of a request. This is its code for the media types of parts.
  UnsupportedMediaType: outside(-32005, 415, "Request content type not supported"),
  TooManyRequests: outside(-32603, 429, "Too many requests"),
  Unavailable: outside(-32603, 503, "Temporarily unavailable"),
};

/** Every code that a server answers with. */
export const wireErrorCodes: readonly WireErrorCode[] = Object.keys(wireErrors) as WireErrorCode[];

/** The code of an error that is answered with an HTTP status outside of JSON-RPC, such as 401. */
export function codeOfStatus(status: number): WireErrorCode | undefined {
  // Servers of HTTP give it on their own, for headers that are too large (RFC 6585 §5).
  if (status === 431) return "RequestTooLarge";
  return wireErrorCodes.find((code) => wireErrors[code].outside === true && wireErrors[code].http === status);
}

/**
 * The gRPC status of each code, as `google.rpc.Status` spells it. Apart from the table above, so that JSON-RPC clients need not bundle it.
 */
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
 * Codes of errors at a client. `ConnectionFailed`: no answer. `ConnectionLost`: the answer broke off. `Timeout`: a limit of the caller
 * passed. `Aborted`: the caller's signal. `InvalidResponse`: the answer is not A2A.
 */
export type ClientErrorCode = "ConnectionFailed" | "ConnectionLost" | "Timeout" | "Aborted" | "InvalidResponse";

/** Every code of an `A2AError`. */
export type A2AErrorCode = WireErrorCode | ClientErrorCode;

/** A code as `google.rpc.ErrorInfo` spells it: `TASK_NOT_FOUND` for `TaskNotFound`. */
export function reasonOf(code: string): string {
  return code.replaceAll(/\B[A-Z]/g, "_$&").toUpperCase();
}

/** Whether a text is a code that a server answers with. */
export function isWireErrorCode(code: string): code is WireErrorCode {
  return Object.hasOwn(wireErrors, code);
}

/** What is wrong with one field of a request. */
export interface FieldViolation {
  /** Path of the field, such as `message.parts[0].text`. Empty for the request itself. */
  readonly field: string;
  /** What is wrong, as the end of a sentence that begins with the field: `is required`. */
  readonly description: string;
}

/** How an error is sent where that differs from how its code is sent. */
export interface SentAs {
  /** Code of JSON-RPC. */
  readonly jsonrpc?: number;
  /** HTTP status of REST. */
  readonly http?: number;
  /** Status of gRPC, as `google.rpc.Status` spells it: `NOT_FOUND`. */
  readonly grpc?: string;
}

/** What an error may say beside its code and message. */
export interface A2AErrorOptions {
  /** Which fields of the request are wrong, and how (`google.rpc.BadRequest`). */
  readonly fields?: readonly FieldViolation[];
  /** Short strings that are sent to the client as `ErrorInfo.metadata`. They must not be secret. */
  readonly metadata?: Readonly<Record<string, string>>;
  /** For `TooManyRequests` and `Unavailable`: after how many seconds the client may try again. */
  readonly retryAfter?: number | undefined;
  /** For `Unauthenticated`: the value of the `WWW-Authenticate` header. */
  readonly challenge?: string | undefined;
  /** Details of a server's error whose type is not known here, as they came. */
  readonly details?: readonly unknown[];
  /** Numbers of an error that an extension defines: `extensionError()` sets them. Default: those of the code. */
  readonly sentAs?: SentAs | undefined;
  /** The error behind this one, for the log. It is never sent. */
  readonly cause?: unknown;
}

/** The members that an error may have or not. */
const members = ["fields", "metadata", "retryAfter", "challenge", "details", "sentAs"] as const;

/**
 * Every error that Parley throws, at clients and at servers. Compare `code`: the message may change with any release.
 * An agent or an interceptor throws one to choose what the client is told. Anything else that they throw is answered as
 * `InternalError`, and only the log has its message.
 *
 * @example
 * ```ts
 * throw new A2AError("PermissionDenied", "This account cannot order", { metadata: { plan: "free" } });
 * ```
 */
export class A2AError extends Error {
  /** Always `A2AError`. */
  override readonly name = "A2AError";
  /** What went wrong. */
  declare readonly code: A2AErrorCode;
  /** Which fields of the request are wrong. Empty where no single field is. */
  declare readonly fields: readonly FieldViolation[];
  /** Short strings that go with the error. */
  declare readonly metadata: Readonly<Record<string, string>>;
  /** After how many seconds to try again, where the error says so. */
  declare readonly retryAfter: number | undefined;
  /** The value of the `WWW-Authenticate` header, if there is one. */
  declare readonly challenge: string | undefined;
  /** Details of a server's error whose type is not known here, as they came. */
  declare readonly details: readonly unknown[];
  /** How it is sent where its code does not say that: errors of extensions, and at a client numbers that no code has. */
  declare readonly sentAs: SentAs | undefined;

  /** `message`: for the client. Default: that of the code. */
  constructor(code: A2AErrorCode, message?: string, options: A2AErrorOptions = {}) {
    super(
      message ?? (wireErrors as Partial<Record<string, ErrorRow>>)[code]?.message ?? code,
      options.cause === undefined ? undefined : { cause: options.cause },
    );
    this.code = code;
    // Node prints every own member of an error that nobody caught, so a member without a value stays on the prototype.
    // Callers pass objects that have more: only these are taken.
    for (const name of members) {
      const value = options[name];
      const isEmpty = typeof value === "object" && Object.keys(value).length === 0;
      if (value !== undefined && !isEmpty) Object.assign(this, { [name]: value });
    }
  }

  static {
    const none = Object.freeze([]);
    const nothing = { fields: none, metadata: Object.freeze({}), details: none };
    Object.assign(this.prototype, nothing, { retryAfter: undefined, challenge: undefined, sentAs: undefined });

    // `console.log` and `util.inspect` of Node and Bun would print every member, and the stacks of all causes. The
    // frames of the caller are enough; loggers have the stack and the cause.
    const value = function (this: A2AError): string {
      const lines = this.stack?.split("\n") ?? [];
      const frames = lines.filter((line) => /^ +at /.test(line) && !/node:|@parley/.test(line));
      const { cause } = this;
      const isNew = cause instanceof Error && !this.message.includes(cause.message);
      const code = isNew && !(cause instanceof A2AError) && "code" in cause ? ` (${String(cause.code)})` : "";
      return [String(this), ...frames.slice(0, 5), ...(isNew ? [`    cause: ${String(cause)}${code}`] : [])].join("\n");
    };
    Object.defineProperty(this.prototype, Symbol.for("nodejs.util.inspect.custom"), { value });
  }

  /** Code, message and wrong fields. */
  override toString(): string {
    // The message often names the first field.
    const fields = this.fields.map(({ field, description }) => `${field || "it"} ${description}`);
    const others = fields.filter((text) => !this.message.includes(text));
    return [`${this.name} [${this.code}]: ${this.message}`, ...others].join("\n  ");
  }
}

/**
 * Whether a thrown value is an `A2AError` with one of these codes.
 *
 * @example
 * ```ts
 * if (hasCode(error, "TaskNotFound", "TaskNotCancelable")) console.log("There is nothing to cancel.");
 * ```
 */
export function hasCode<Code extends A2AErrorCode>(
  thrown: unknown,
  ...codes: readonly Code[]
): thrown is A2AError & { readonly code: Code } {
  return thrown instanceof A2AError && codes.some((code) => code === thrown.code);
}

/** An `InvalidParams` error for wrong fields. Its default message names the first of them. */
export function invalidParams(
  fields: readonly FieldViolation[],
  message: string = withFields(wireErrors.InvalidParams.message, fields),
): A2AError {
  return new A2AError("InvalidParams", message, { fields });
}

/** A sentence about the first wrong field, with the number of the others. */
export function withFields(start: string, [first, ...others]: readonly FieldViolation[]): string {
  if (first === undefined) return start;
  const more = others.length === 0 ? "" : ` (and ${others.length} more)`;
  return `${start}: ${first.field === "" ? "it" : first.field} ${first.description}${more}`;
}

/** A thrown value as an error for clients: an `A2AError` unchanged, anything else as an `InternalError` that hides it in its `cause`. */
export function toA2AError(thrown: unknown): A2AError {
  return thrown instanceof A2AError ? thrown : new A2AError("InternalError", undefined, { cause: thrown });
}
