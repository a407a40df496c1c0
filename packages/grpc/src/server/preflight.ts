import type { UniversalRequest } from "@parley/a2a/protocol";

/** Whether a browser asks before it calls. */
export function isPreflight(request: UniversalRequest): boolean {
  return request.method === "OPTIONS" && request.header("access-control-request-method") !== undefined;
}
