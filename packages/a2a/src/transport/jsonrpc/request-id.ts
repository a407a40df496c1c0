import { deferred } from "../../base/index.ts";
import { isObject } from "../../model/schema.ts";
import type { UniversalRequest } from "../../protocol/index.ts";
import type { ServerHost } from "../server/binding.ts";
import { bodyText, parseJson } from "../server/request.ts";

/** The id of a request, which its answer repeats (JSON-RPC 2.0 §5). */
export type JsonRpcId = string | number | null;

/** The id for the answer; `null` where the request has no valid one. */
export function idOf(value: unknown): JsonRpcId {
  const id = isObject(value) ? value["id"] : undefined;
  return typeof id === "string" || Number.isSafeInteger(id) ? (id as JsonRpcId) : null;
}

/** Most bytes of a request whose caller is refused that are read for its id. */
const refusedBytes = 64 * 1024;
/** How long they are waited for, in milliseconds. */
const refusedTime = 5_000;

/** The id of a request whose caller is refused (JSON-RPC 2.0 §5); `null` where it cannot be read soon and in little memory. */
export async function idOfRefused({ clock, limits }: ServerHost, request: UniversalRequest): Promise<JsonRpcId> {
  // The client sends its body only after a `100 Continue`, so as not to send it in vain (RFC 9110 §10.1.1).
  if (request.header("expect") !== undefined) return null;
  const late = deferred<string>();
  const stop = clock.after(refusedTime, () => late.resolve(""));
  const bodyBytes = Math.min(refusedBytes, limits.bodyBytes);
  try {
    const text = await Promise.race([late.promise, bodyText(request, { ...limits, bodyBytes })]);
    return idOf(parseJson(text, request, limits, limits.depth + 1));
  } catch {
    return null;
  } finally {
    stop();
  }
}
