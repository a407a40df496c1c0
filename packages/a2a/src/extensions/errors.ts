import {
  A2AError,
  invalidParams,
  isWireErrorCode,
  wireErrors,
  wireStatuses,
  type A2AErrorOptions,
  type WireErrorCode,
} from "../model/index.ts";
import { isObject } from "../model/schema.ts";

/** An error that an extension defines. */
export interface ExtensionErrorDefinition {
  /** Its name on every binding, in capitals: the `reason` of `google.rpc.ErrorInfo`, with the URI of the extension as its domain. */
  readonly reason: string;
  /** Its code over JSON-RPC. Must not be a code of JSON-RPC or A2A. */
  readonly jsonrpc: number;
  /** The protocol error for code that does not know the extension: `error.code` on both sides. */
  readonly code: WireErrorCode;
  /** Its HTTP status over REST, from 400 to 599. Default: the status of `code`. */
  readonly http?: number;
  /** Its status over gRPC, such as `NOT_FOUND`. Default: the status of `code`. */
  readonly grpc?: string;
  /** Default message, which the client may read. The throwing code can replace it. */
  readonly message: string;
}

/** An error of an extension. The agent creates it, and the client recognizes it. */
export interface ExtensionError {
  /**
   * Makes the error, to be thrown by a hook or a method of the extension.
   *
   * @param message - A sentence that the client may read. Default: the definition's message.
   */
  (message?: string, options?: Pick<A2AErrorOptions, "cause" | "fields" | "metadata" | "retryAfter">): A2AError;
  /** The definition of the error. */
  readonly definition: ExtensionErrorDefinition;
  /** Whether a thrown value is this error, even if it was received over any binding and version. */
  is(thrown: unknown): thrown is A2AError;
}

const errorInfo = "type.googleapis.com/google.rpc.ErrorInfo";

/**
 * Defines an error of an extension, with its own code on each binding (A2A 1.0 §4.6.2, §9.5, §11.6). Its hooks and methods throw it, and
 * clients recognize it.
 *
 * @param uri - The URI of the extension.
 * @throws A2AError `InvalidParams` that names each wrong field.
 *
 * @example
 * ```ts
 * const outOfPaper = extensionError("https://example.com/extensions/print/v1", {
 *   reason: "OUT_OF_PAPER",
 *   jsonrpc: -32300,
 *   code: "Unavailable",
 *   message: "There is no paper",
 * });
 * const refuse = () => {
 *   throw outOfPaper("Tray 2 is empty", { metadata: { tray: "2" } });
 * };
 * const isAboutPaper = (thrown: unknown) => outOfPaper.is(thrown);
 * ```
 */
export function extensionError(uri: string, definition: ExtensionErrorDefinition): ExtensionError {
  const { reason, jsonrpc, code, message: standard } = definition;
  checkDefinition(uri, definition);
  const { http = wireErrors[code].http, grpc = wireStatuses[code] } = definition;
  const sentAs = Object.freeze({ jsonrpc, http, grpc });
  const info = Object.freeze({ "@type": errorInfo, reason, domain: uri });

  const make = (message = standard, options: A2AErrorOptions = {}): A2AError =>
    new A2AError(code, message, { ...options, details: [info], sentAs });

  const is = (thrown: unknown): thrown is A2AError => {
    if (!(thrown instanceof A2AError)) return false;
    const named = thrown.details.filter((detail) => isObject(detail) && detail["@type"] === errorInfo);
    // An error answer of 0.3 over JSON-RPC has only the code.
    if (named.length === 0) return thrown.sentAs?.jsonrpc === jsonrpc;
    return named.some((detail) => isObject(detail) && detail["reason"] === reason && detail["domain"] === uri);
  };
  return Object.freeze(Object.assign(make, { definition: Object.freeze({ ...definition }), is }));
}

function checkDefinition(uri: string, { reason, jsonrpc, code, http, grpc }: ExtensionErrorDefinition): void {
  const known = Object.values(wireErrors).some((row) => row.jsonrpc === jsonrpc);
  const statuses = new Set(Object.values(wireStatuses));
  const fields = [
    typeof uri === "string" && uri !== "" ? undefined : ["uri", "must be the URI of the extension"],
    // google.rpc.ErrorInfo: at most 63 characters.
    typeof reason === "string" && /^[A-Z][A-Z\d_]{0,62}$/.test(reason)
      ? undefined
      : ["reason", "must be 1 to 63 capitals, digits and underscores"],
    Number.isInteger(jsonrpc) && !known
      ? undefined
      : ["jsonrpc", "must be a whole number that is not a code of JSON-RPC or A2A"],
    isWireErrorCode(code) ? undefined : ["code", "must be a code of the protocol"],
    http === undefined || (Number.isInteger(http) && http >= 400 && http <= 599)
      ? undefined
      : ["http", "must be an HTTP status from 400 to 599"],
    grpc === undefined || statuses.has(grpc)
      ? undefined
      : ["grpc", `must be one of ${[...statuses].sort().join(", ")}`],
  ].filter((field) => field !== undefined);
  if (fields.length > 0) {
    throw invalidParams(fields.map(([field = "", description = ""]) => ({ field, description })));
  }
}
