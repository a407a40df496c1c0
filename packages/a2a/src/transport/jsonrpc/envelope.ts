import { A2AError } from "../../model/index.ts";
import { isObject } from "../../model/schema.ts";

/** The request object of JSON-RPC 2.0 (A2A 1.0 §9.3). */

export type JsonRpcId = string | number | null;

export interface JsonRpcCall {
  /** Absent: a notification, which nobody waits an answer for. */
  readonly id: JsonRpcId | undefined;
  readonly method: string;
  readonly params: unknown;
}

/** The id to answer under, as far as a request has one that can be read. */
export function idOf(value: unknown): JsonRpcId {
  const id = isObject(value) ? value["id"] : undefined;
  return typeof id === "string" || Number.isSafeInteger(id) ? (id as JsonRpcId) : null;
}

export function readCall(value: unknown): JsonRpcCall {
  if (Array.isArray(value)) throw invalid("", "is a batch, which A2A does not have: send one request at a time");
  if (!isObject(value)) throw invalid("", "must be a JSON object");
  const { jsonrpc, id, method, params } = value;
  if (jsonrpc !== "2.0") throw invalid("jsonrpc", 'must be "2.0"');
  if (id !== undefined && id !== null && typeof id !== "string" && !Number.isSafeInteger(id)) {
    throw invalid("id", "must be a string, an integer or null");
  }
  if (typeof method !== "string" || method === "") throw invalid("method", "must name a method");
  return { id: id as JsonRpcId | undefined, method, params: params ?? {} };
}

function invalid(field: string, description: string): A2AError {
  return new A2AError("InvalidRequest", `Not a JSON-RPC 2.0 request: ${field === "" ? "it" : field} ${description}`, {
    fields: field === "" ? [] : [{ field, description }],
  });
}
