import {
  A2AError,
  isWireErrorCode,
  codeOfStatus,
  reasonOf,
  wireErrorCodes,
  wireErrors,
  wireStatuses,
  type A2AErrorCode,
  type FieldViolation,
  type WireErrorCode,
} from "../model/index.ts";
import { isArray, isObject } from "../model/schema.ts";

/**
 * Errors over JSON-RPC (§9.5) and REST (§11.6), for all versions, because codes and reasons are the same. Readers prefer the reason in
 * the details, then the code, then the HTTP status, so they understand 1.0.0 and 0.3 too.
 */

const types = "type.googleapis.com/google.rpc.";
/** Domain of the reasons that A2A defines (§11.6), and of the reasons that all SDKs use for errors of JSON-RPC. */
const a2aDomain = "a2a-protocol.org";
/** Domain of Parley's own reasons, which distinguish errors with the same code. */
const ownDomain = "parley";

interface JsonRpcErrorObject {
  readonly code: number;
  readonly message: string;
  readonly data?: readonly object[];
}

export function encodeJsonRpcError(error: A2AError): JsonRpcErrorObject {
  const code = wireCode(error.code);
  const row = { ...wireErrors[code], ...error.sentAs };
  const data = detailsOf(error, code, codeOfJsonRpc(row.jsonrpc) === code);
  return { code: row.jsonrpc, message: error.message, ...(data.length > 0 && { data }) };
}

export function decodeJsonRpcError(value: unknown): A2AError {
  if (!isObject(value) || typeof value["code"] !== "number")
    return new A2AError("InvalidResponse", "The peer's error has no code", { details: [value] });
  const details = readDetails(value["data"]);
  const jsonrpc = value["code"];
  const known = codeOfJsonRpc(jsonrpc);
  return new A2AError(details.code ?? known ?? "InternalError", textOf(value["message"]), {
    ...details,
    sentAs: known ? undefined : { jsonrpc },
  });
}

export function encodeRestError(error: A2AError): string {
  return JSON.stringify(restErrorOf(error));
}

/** The body of a REST error. */
export function restErrorOf(error: A2AError): object {
  const code = wireCode(error.code);
  const { http, grpc } = { ...wireErrors[code], grpc: wireStatuses[code], ...error.sentAs };
  // The status is enough for a plain error, but the official client recognizes wrong parameters by their reason.
  const isPlain = code !== "InvalidParams" && codeOfHttp(http, grpc, true) === code;
  const details = detailsOf(error, code, isPlain);
  return { error: { code: http, status: grpc, message: error.message, details } };
}

export function decodeRestError(status: number, body: unknown): A2AError {
  const outer = isObject(body) ? body : {};
  // Older servers send the error without the member `error`, or send problem details (RFC 9457).
  const error = isObject(outer["error"]) ? outer["error"] : outer;
  const details = readDetails(error["details"] ?? error["data"] ?? error["errors"]);
  const rpc = typeof error["code"] === "number" && error["code"] < 0 ? codeOfJsonRpc(error["code"]) : undefined;
  const name = typeof error["status"] === "string" ? error["status"] : "";
  const understood = "code" in error || name !== "" || details.fields.length > 0;
  // Events in a stream have no HTTP status, so their body contains the status.
  const http = status < 400 && typeof error["code"] === "number" ? error["code"] : status;
  const code = details.code ?? codeOfProblem(error["type"]) ?? rpc ?? codeOfHttp(http, name, understood);
  const text = textOf(error["message"]) ?? textOf(error["detail"]) ?? textOf(error["title"]);
  return new A2AError(code, text ?? `The peer answered with HTTP ${status}`, details);
}

/** The code that is sent for an error. Codes that only clients use become the codes that a proxy would answer. */
export function wireCode(code: A2AErrorCode): WireErrorCode {
  return isWireErrorCode(code) ? code : code === "InvalidResponse" ? "InvalidAgentResponse" : "Unavailable";
}

function detailsOf(error: A2AError, code: WireErrorCode, isPlain: boolean): object[] {
  const details: object[] = [];
  if (error.fields.length > 0)
    details.push({
      "@type": `${types}BadRequest`,
      fieldViolations: error.fields.map(({ field, description }) => ({ field, description })),
    });
  const hasMetadata = Object.keys(error.metadata).length > 0;
  if (isNamed(code) || hasMetadata || !isPlain)
    details.push({
      "@type": `${types}ErrorInfo`,
      reason: reasonOf(code),
      domain: isShared(code) ? a2aDomain : ownDomain,
      ...(hasMetadata && { metadata: error.metadata }),
    });
  if (error.retryAfter !== undefined)
    details.push({ "@type": `${types}RetryInfo`, retryDelay: `${error.retryAfter}s` });
  for (const detail of error.details) if (isObject(detail) && typeof detail["@type"] === "string") details.push(detail);
  return details;
}

interface Details {
  code?: WireErrorCode;
  fields: FieldViolation[];
  metadata: Record<string, string>;
  retryAfter?: number;
  /** Details of unknown types. */
  details: unknown[];
}

/** Reads details: an array of objects, one object, or anything else. */
function readDetails(data: unknown): Details {
  const found: Details = { fields: [], metadata: {}, details: [] };
  for (const detail of [data ?? []].flat()) readDetail(detail, found);
  return found;
}

function readDetail(detail: unknown, found: Details): void {
  if (!isObject(detail)) {
    found.details.push(detail);
    return;
  }
  const type = textOf(detail["@type"]) ?? "";
  const retryAfter = Number.parseFloat(String(detail["retryDelay"]));
  if (type.endsWith("ErrorInfo") || (type === "" && typeof detail["reason"] === "string")) {
    const code = codeOfReason(detail["reason"]);
    if (code) found.code ??= code;
    else found.details.push(detail);
    if (isObject(detail["metadata"])) {
      for (const [name, text] of Object.entries(detail["metadata"]))
        if (typeof text === "string") found.metadata[name] = text;
    }
  } else if (type.endsWith("BadRequest") && isArray(detail["fieldViolations"])) {
    for (const violation of detail["fieldViolations"]) readViolation(violation, found);
  } else if (type === "" && typeof detail["field"] === "string") {
    readViolation(detail, found);
  } else if (type.endsWith("RetryInfo") && retryAfter >= 0) {
    found.retryAfter = retryAfter;
  } else found.details.push(detail);
}

function readViolation(value: unknown, found: Details): void {
  if (!isObject(value)) return;
  const description = textOf(value["description"]) ?? textOf(value["message"]) ?? "is not valid";
  found.fields.push({ field: textOf(value["field"]) ?? "", description });
}

function codeOfReason(reason: unknown): WireErrorCode | undefined {
  return wireErrorCodes.find((code) => reasonOf(code) === reason);
}

/** The first error of the table with this code, which is the error that JSON-RPC itself defines. */
function codeOfJsonRpc(code: number): WireErrorCode | undefined {
  return wireErrorCodes.find((name) => wireErrors[name].jsonrpc === code);
}

/** Whether A2A defines the error. Its reason is then the code in upper snake case (`reasonOf`, §11.6). */
function isNamed(code: WireErrorCode): boolean {
  const { jsonrpc, outside } = wireErrors[code];
  // The codes of JSON-RPC itself begin with -32700.
  return jsonrpc > -32_100 && outside !== true;
}

/** Whether A2A or JSON-RPC defines the error, so that every implementation knows its code. */
export function isShared(code: WireErrorCode): boolean {
  return isNamed(code) || codeOfJsonRpc(wireErrors[code].jsonrpc) === code;
}

/** Problem details name the error in the last part of a URI: `…/task-not-found`. */
function codeOfProblem(type: unknown): WireErrorCode | undefined {
  if (typeof type !== "string") return undefined;
  return codeOfReason(
    type
      .slice(type.lastIndexOf("/") + 1)
      .replaceAll("-", "_")
      .toUpperCase(),
  );
}

/** Codes for statuses that are not in the table of errors. `spoken` applies if the body follows the protocol. Some statuses are from 1.0.0. */
const statuses: Readonly<Record<number, WireErrorCode>> = {
  404: "MethodNotFound",
  409: "TaskNotCancelable",
  501: "UnsupportedOperation",
  502: "Unavailable",
  504: "Unavailable",
};
const spoken: Readonly<Record<number, WireErrorCode>> = {
  400: "InvalidParams",
  415: "ContentTypeNotSupported",
  422: "InvalidParams",
  502: "InvalidAgentResponse",
};

/** The code of an answer without a reason. */
function codeOfHttp(status: number, name: string, understood: boolean): WireErrorCode {
  // Web frameworks answer 404 if there is no agent.
  if (status === 404 && name === "NOT_FOUND") return "TaskNotFound";
  if (status === 409 && name === "ABORTED") return "TaskGenerationMismatch";
  if (name === "FAILED_PRECONDITION" && status === 400) return "UnsupportedOperation";
  if (name === "UNIMPLEMENTED" && status !== 404 && status !== 405) return "UnsupportedOperation";
  return (
    (understood ? spoken[status] : undefined) ??
    codeOfStatus(status) ??
    statuses[status] ??
    (status >= 400 && status < 500 ? "InvalidRequest" : "InternalError")
  );
}

function textOf(value: unknown): string | undefined {
  return typeof value === "string" && value !== "" ? value : undefined;
}
