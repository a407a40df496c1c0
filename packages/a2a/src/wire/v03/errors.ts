import { A2AError, wireErrors, type WireErrorCode } from "../../model/index.ts";
import { isObject } from "../../model/schema.ts";
import { decodeRestError as decodeDetailed, isShared, restErrorOf, wireCode } from "../errors.ts";

export { decodeJsonRpcError } from "../errors.ts";

/**
 * An error of JSON-RPC (0.3 §8), without `data`: the Go SDKs fail unless it is an object (0.3) or a list (2.x). The message names the wrong
 * field.
 */
export function encodeJsonRpcError(error: A2AError): unknown {
  return { code: jsonRpcCodeOf(error), message: error.message };
}

/** An error of REST: the body of 1.0; the code and message that the JavaScript SDK reads; and the type that the Python SDK 1.x reads. */
export function encodeRestError(error: A2AError): string {
  const code = wireCode(error.code);
  const type = isShared(code) ? { type: typeOf(code) } : {};
  return JSON.stringify({ code: jsonRpcCodeOf(error), message: error.message, ...type, ...restErrorOf(error) });
}

function jsonRpcCodeOf(error: A2AError): number {
  return error.sentAs?.jsonrpc ?? wireErrors[wireCode(error.code)].jsonrpc;
}

function typeOf(code: WireErrorCode): string {
  if (code === "ParseError") return "JSONParseError";
  return code.endsWith("Error") ? code : `${code}Error`;
}

/** What an HTTP status means in 0.3. Where a status stands for several errors, the message decides. */
const statuses: Readonly<Record<number, readonly (readonly [words: RegExp, code: WireErrorCode])[]>> = {
  404: [
    [/card/i, "ExtendedAgentCardNotConfigured"],
    [/method/i, "MethodNotFound"],
    [/(?:)/, "TaskNotFound"],
  ],
  409: [
    [/card/i, "ExtendedAgentCardNotConfigured"],
    [/(?:)/, "TaskNotCancelable"],
  ],
  415: [[/(?:)/, "ContentTypeNotSupported"]],
  422: [[/(?:)/, "InvalidParams"]],
  501: [
    [/push/i, "PushNotificationNotSupported"],
    [/(?:)/, "UnsupportedOperation"],
  ],
  502: [[/(?:)/, "InvalidAgentResponse"]],
};

/** The HTTP status for a gRPC status without details, as the JavaScript SDK sends it. */
const named: Readonly<Record<string, number>> = { FAILED_PRECONDITION: 409, UNIMPLEMENTED: 501 };

/** An error of REST in any dialect of 0.3: `{code, message, data}`, `google.rpc.Status`, or a message alone under a status. */
export function decodeRestError(status: number, body: unknown): A2AError {
  const plain = plainError(status, body);
  const code = statuses[plain?.status ?? 0]?.find(([words]) => words.test(plain?.message ?? ""))?.[1];
  return code === undefined ? decodeDetailed(status, body) : new A2AError(code, plain?.message);
}

/** The status and the message of an error that has nothing else. */
function plainError(status: number, body: unknown): { readonly status: number; readonly message: string } | undefined {
  if (!isObject(body)) return undefined;
  if (typeof body["message"] === "string" && Object.keys(body).length === 1)
    return { status, message: body["message"] };
  const { error } = body;
  if (!isObject(error) || typeof error["status"] !== "string" || !isEmpty(error["details"])) return undefined;
  const http = named[error["status"]];
  return http === undefined ? undefined : { status: http, message: String(error["message"]) };
}

function isEmpty(details: unknown): boolean {
  return details === undefined || (Array.isArray(details) && details.length === 0);
}
