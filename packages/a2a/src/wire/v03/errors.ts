import { wireErrors, type A2AError } from "../../model/index.ts";
import { codeOfJsonRpc, detailsOf, restErrorOf, wireCode } from "../errors.ts";

export { decodeJsonRpcError, decodeRestError } from "../errors.ts";

/**
 * An error of JSON-RPC (0.3 §8). `data` is one object where there is something to say beyond the code: Go's SDK of 0.3
 * reads nothing of an answer whose `data` is a list.
 */
export function encodeJsonRpcError(error: A2AError): unknown {
  const code = wireCode(error.code);
  const { jsonrpc } = wireErrors[code];
  const isPlain = codeOfJsonRpc(jsonrpc) === code;
  const says = !isPlain || error.fields.length > 0 || Object.keys(error.metadata).length > 0;
  const [data] = says ? detailsOf(error, code, isPlain) : [];
  return { code: jsonrpc, message: error.message, ...(data !== undefined && { data }) };
}

/**
 * An error of REST: the body of 1.0, and beside it the code of JSON-RPC and the message, which JavaScript's SDK of 0.3
 * looks for there and nowhere else.
 */
export function encodeRestError(error: A2AError): string {
  const { jsonrpc } = wireErrors[wireCode(error.code)];
  return JSON.stringify({ code: jsonrpc, message: error.message, ...restErrorOf(error) });
}
