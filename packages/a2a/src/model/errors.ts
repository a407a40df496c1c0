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

/**
 * The JSON-RPC code, the HTTP status and the default message of each code (A2A 1.0 §5.4).
 * docs/errors.md is generated from the comments of the codes: what happened, then the cure. Links are relative to docs/.
 */
export const wireErrors: Readonly<Record<WireErrorCode, ErrorRow>> = {
  /**
   * This caller has no task with this id. A caller never sees tasks of other callers, and finished tasks are deleted after the
   * [retention](configuration.md#retention).
   * Cure: Check the id and the credentials: a task belongs to the caller that created it. `memoryStore()` loses its tasks on restart;
   * `sqliteStore()` keeps them.
   */
  TaskNotFound: row(-32001, 404, "Task not found"),
  /**
   * The task is already completed, failed, canceled or rejected.
   * Cure: None needed. `getTask()` shows how the task ended.
   */
  TaskNotCancelable: row(-32002, 400, "Task cannot be canceled"),
  /**
   * A message or a call contains a webhook, and the card does not declare `pushNotifications`.
   * Cure: At the server, set [`push`](configuration.md#push). At the client, stream, or wait with `client.waitFor(task)`.
   */
  PushNotificationNotSupported: row(-32003, 400, "Push notifications are not supported"),
  /**
   * The task or the agent does not support this call: a message to a finished task, a stream of a finished task or from an agent that
   * does not stream, an extended card that the card does not declare, or a task too large for one answer. The message says which.
   * Cure: For a new task, send the message without `taskId`, in the same context. Read a finished task with `getTask()`. Request a large
   * task with a shorter history, or without its artifacts.
   */
  UnsupportedOperation: row(-32004, 400, "This operation is not supported"),
  /**
   * A part of the message has a media type that the agent does not accept. `fields` lists the accepted ones.
   * Cure: At the client, send another format. At the agent, add the type to `defaultInputModes` or to a skill.
   */
  ContentTypeNotSupported: row(-32005, 400, "Content type not supported"),
  /**
   * The agent yielded an invalid event: not JSON, an event after the last one, or an event that does not fit its task. The client gets a
   * general message; the server's log names the event and the place.
   * Cure: Read the log and fix the agent. A client can only tell the operator.
   */
  InvalidAgentResponse: row(-32006, 500, "Invalid agent response"),
  /**
   * The card declares an extended card, and the server has none.
   * Cure: At the server, set [`extendedCard`](configuration.md#several-agents) of the mount. At the client, use the public card.
   */
  ExtendedAgentCardNotConfigured: row(-32007, 400, "No extended agent card is configured"),
  /**
   * The card requires an extension that the caller did not request. `metadata.extensions` has its URI.
   * Cure: `connect(url, { extensions: [uri] })`, if the client supports the extension.
   */
  ExtensionSupportRequired: row(-32008, 400, "A required extension was not requested"),
  /**
   * The request names a protocol version that the server does not support. `metadata.supportedVersions` lists the supported ones.
   * Cure: Omit the option `version` of `connect()`, so that it chooses from the card. At the server, see
   * [`versions`](configuration.md#a-server-anywhere).
   */
  VersionNotSupported: row(-32009, 400, "Protocol version not supported"),
  /**
   * Only in the 1.1 draft: the message has `ifGenerationMatch`, and the task has changed since.
   * Cure: Read the task, and send again with its current generation if the message still makes sense.
   */
  TaskGenerationMismatch: row(-32010, 409, "Task has moved on"),
  /**
   * The request body is not JSON, not UTF-8, or empty.
   * Cure: Send JSON. If a proxy or a framework reads the body, mount the agents before it.
   */
  ParseError: row(-32700, 400, "Invalid JSON payload"),
  /**
   * The body is JSON but not a JSON-RPC 2.0 request, is nested too deeply, or was cut off.
   * Cure: Send `jsonrpc`, `id`, `method` and `params`. `limits.depth` of the server allows deeper requests.
   */
  InvalidRequest: row(-32600, 400, "Request payload validation error"),
  /**
   * Nothing is served at this path, or this protocol version has no method of this name.
   * Cure: Use the address in the card, `supportedInterfaces[].url`. Behind a proxy that rewrites paths, set `publicUrl` and `basePath`
   * of the server ([hosting](hosting.md#behind-a-proxy)).
   */
  MethodNotFound: row(-32601, 404, "Method not found"),
  /**
   * A field of the request is missing or wrong. `fields` has the path and the problem of each. `serve()` and `createHandler()` throw this
   * code for their options too, with a message that starts with “This cannot be served”. Cure: Correct the fields. For options, see [a
   * server that does not start](#a-server-that-does-not-start).
   */
  InvalidParams: row(-32602, 400, "Invalid parameters"),
  /**
   * The agent, an interceptor or the server threw something other than an `A2AError`. Its message is not sent, because it may contain
   * secrets.
   * Cure: The server's log has the error with its stack. To tell a client something, throw an `A2AError`.
   */
  InternalError: row(-32603, 500, "Internal error"),
  /**
   * Credentials are missing, wrong or expired. `challenge` has the demand of the server. Cure: Pass [`credentials`](credentials.md) that
   * fit a scheme of the card; on the command line, `parley login` or `--token`. If they are right, check that they are sent: only to the
   * origin of the agent's address and to `credentialOrigins`, and only over TLS or on this machine.
   */
  Unauthenticated: outside(-32603, 401, "Authentication required"),
  /**
   * The caller is authenticated but not allowed to do this: a scope is missing, an authorizer refuses, the page has another origin, or the request
   * names another host.
   * Cure: Get a token with the scope that the message names. For pages, set [`cors`](configuration.md#cors). For a server reached by
   * another name, set `allowedHosts` or `publicUrl`.
   */
  PermissionDenied: outside(-32603, 403, "Not allowed"),
  /**
   * The address accepts another HTTP method. The header `Allow` lists it.
   * Cure: JSON-RPC takes `POST`. To look at an agent in a browser, open its card.
   */
  MethodNotAllowed: outside(-32601, 405, "HTTP method not allowed"),
  /**
   * The body is larger than `limits.bodyBytes`, 10 MiB by default, or the stored headers are too large.
   * Cure: Send files as a `url` instead of bytes, raise [the limit](configuration.md#limits), or let the server accept large files with
   * [`blobs`](files.md).
   */
  RequestTooLarge: outside(-32600, 413, "Request body too large"),
  // The specification has no code for the media type of a request. This is its code for the media types of parts.
  /**
   * The `Content-Type` of the request is neither `application/json` nor `application/a2a+json`.
   * Cure: Set the header. `curl` needs `-H 'Content-Type: application/json'`.
   */
  UnsupportedMediaType: outside(-32005, 415, "Request content type not supported"),
  /**
   * The caller reached a [rate](configuration.md#limitsrate), its number of streams, or its number of running tasks.
   * Cure: Wait for `retryAfter` seconds. The client waits and retries within the budget of its
   * [`retry`](configuration.md#retry-and-reconnect).
   */
  TooManyRequests: outside(-32603, 429, "Too many requests"),
  /**
   * The server cannot answer now: it is stopping, its store is locked or full, its memory for requests or answers is used up, or its
   * authorization server does not answer.
   * Cure: Wait for `retryAfter` seconds. The client waits and retries within the budget of its
   * [`retry`](configuration.md#retry-and-reconnect). If it lasts, the server's log names what is missing: disk space, the database, the
   * authorization server.
   */
  Unavailable: outside(-32603, 503, "Temporarily unavailable"),
};

/** Every code that a server answers with. */
export const wireErrorCodes: readonly WireErrorCode[] = Object.keys(wireErrors) as WireErrorCode[];

/** The code of an error that is answered with an HTTP status outside of JSON-RPC, such as 401. */
export function codeOfStatus(status: number): WireErrorCode | undefined {
  // HTTP servers send it for headers that are too large (RFC 6585 §5).
  if (status === 431) return "RequestTooLarge";
  return wireErrorCodes.find((code) => wireErrors[code].outside === true && wireErrors[code].http === status);
}

/**
 * The gRPC status of each code, as `google.rpc.Status` spells it. Separate from the table above, so that JSON-RPC clients need not bundle it.
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

/** Codes of errors at a client. No server sends them. */
export type ClientErrorCode =
  /**
   * No connection: the name does not resolve, nothing listens, or TLS failed. `cause` has the error of the system. The message says how
   * long the client retried; it does not retry certificate errors.
   * Cure: Check the address, and that the server runs. In a browser, pages also get this error if the server does not allow their origin: set its
   * option `cors`. The server logs the rejected origin.
   */
  | "ConnectionFailed"
  /**
   * The answer was cut off. The client reconnects a stream within the budget of `reconnect`, and throws this when the budget is spent.
   * Cure: The task continues at the server. `client.getTask()` or `client.subscribeToTask()` finds it again. If it always happens after
   * the same time, a proxy closes idle connections: raise its timeout.
   */
  | "ConnectionLost"
  /**
   * A time limit of the caller passed: `connectTimeout`, `idleTimeout`, `timeout`, or an `AbortSignal.timeout()`.
   * Cure: Raise the limit, or send with `returnImmediately` and wait for the task with `client.waitFor()`.
   */
  | "Timeout"
  /**
   * The caller aborted its signal, or the turn of an agent ended early: a cancel, a timeout, a stopping server.
   * Cure: None needed. An agent lets the error pass, and cleans up in `finally`.
   */
  | "Aborted"
  /**
   * The answer is not A2A: an HTML page of a proxy, a redirect, a card without an interface that the client supports, a card with an
   * invalid signature, or an answer larger than `maxResponseBytes`. `metadata.httpStatus` has the status.
   * Cure: Open the card's address, `/.well-known/agent-card.json`, with `curl`. It must answer with JSON, and name addresses that
   * clients reach.
   */
  | "InvalidResponse";

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

/** The problem of one field of a request. */
export interface FieldViolation {
  /** Path of the field, such as `message.parts[0].text`. Empty for the request itself. */
  readonly field: string;
  /** The problem, as the end of a sentence that begins with the field: `is required`. */
  readonly description: string;
}

/** Wire codes of an error that differ from the defaults of its code. */
export interface SentAs {
  /** Code of JSON-RPC. */
  readonly jsonrpc?: number;
  /** HTTP status of REST. */
  readonly http?: number;
  /** Status of gRPC, as `google.rpc.Status` spells it: `NOT_FOUND`. */
  readonly grpc?: string;
}

/** Fields of an error, in addition to its code and message. */
export interface A2AErrorOptions {
  /** Which fields of the request are wrong, and how (`google.rpc.BadRequest`). */
  readonly fields?: readonly FieldViolation[];
  /** Short strings that are sent to the client as `ErrorInfo.metadata`. They must not be secret. */
  readonly metadata?: Readonly<Record<string, string>>;
  /** For `TooManyRequests` and `Unavailable`: how many seconds to wait before a retry. */
  readonly retryAfter?: number | undefined;
  /** For `Unauthenticated`: the value of the `WWW-Authenticate` header. */
  readonly challenge?: string | undefined;
  /** The wire codes of an error that an extension defines, set by `extensionError()`. Default: the codes of `code`. */
  readonly details?: readonly unknown[];
  /** Numbers of an error that an extension defines: `extensionError()` sets them. Default: the values of the code. */
  readonly sentAs?: SentAs | undefined;
  /** The cause of this error, for the log. It is never sent. */
  readonly cause?: unknown;
}

/** The optional members of an error. */
const members = ["fields", "metadata", "retryAfter", "challenge", "details", "sentAs"] as const;

/**
 * Every error that Parley throws, at clients and at servers. Compare `code`: the message may change with any release. An
 * agent or an interceptor throws it to choose the error that the client gets. Anything else that they throw becomes `InternalError`, whose message is
 * only in the log.
 *
 * @example
 * ```ts
 * throw new A2AError("PermissionDenied", "This account cannot order", { metadata: { plan: "free" } });
 * ```
 */
export class A2AError extends Error {
  /** Always `A2AError`. */
  override readonly name = "A2AError";
  /** The kind of the error. */
  declare readonly code: A2AErrorCode;
  /** Which fields of the request are wrong. Empty if no single field is. */
  declare readonly fields: readonly FieldViolation[];
  /** Short strings that go with the error. */
  declare readonly metadata: Readonly<Record<string, string>>;
  /** `Retry-After` in seconds, if any. */
  declare readonly retryAfter: number | undefined;
  /** The value of the `WWW-Authenticate` header, if there is one. */
  declare readonly challenge: string | undefined;
  /** Details of a server's error with unknown types, as received. */
  declare readonly details: readonly unknown[];
  /** How it is sent, if its code does not define this: for errors of extensions, and at a client for unknown error numbers. */
  declare readonly sentAs: SentAs | undefined;

  /** `message`: for the client. Default: the message of the code. */
  constructor(code: A2AErrorCode, message?: string, options: A2AErrorOptions = {}) {
    super(
      message ?? (wireErrors as Partial<Record<string, ErrorRow>>)[code]?.message ?? code,
      options.cause === undefined ? undefined : { cause: options.cause },
    );
    this.code = code;
    // Node prints every own member of an uncaught error, so a member without a value stays on the prototype.
    // Callers pass objects with further members, which are ignored.
    for (const name of members) {
      const value = options[name];
      const isEmpty = typeof value === "object" && Object.keys(value).length === 0;
      if (value !== undefined && !isEmpty) Object.assign(this, { [name]: value });
    }
  }

  static {
    const none = Object.freeze([]);
    Object.assign(this.prototype, { fields: none, metadata: Object.freeze({}), details: none });

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

/** A sentence about the first wrong field, with the number of other wrong fields. */
export function withFields(start: string, [first, ...others]: readonly FieldViolation[]): string {
  if (first === undefined) return start;
  const more = others.length === 0 ? "" : ` (and ${others.length} more)`;
  return `${start}: ${first.field === "" ? "it" : first.field} ${first.description}${more}`;
}

/** A thrown value as an error for clients: an `A2AError` unchanged, anything else as an `InternalError` that hides it in its `cause`. */
export function toA2AError(thrown: unknown): A2AError {
  return thrown instanceof A2AError ? thrown : new A2AError("InternalError", undefined, { cause: thrown });
}
