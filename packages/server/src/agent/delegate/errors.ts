import { wasNeverSent } from "@parley/a2a/internal/base/http";
import { A2AError, hasCode, type A2AErrorCode } from "@parley/a2a/internal/model/index";

/* What errors of calls to another agent mean. */

/** The error of a call. What the function of the agent throws is none. */
export class CallFailed extends Error {
  constructor(cause: unknown) {
    super("The call failed", { cause });
  }
}

/** Whether a message may have arrived although its call failed. */
export function mayHaveArrived(error: unknown): boolean {
  if (hasCode(error, "InvalidResponse")) return /^50[24]$/.test(error.metadata["httpStatus"] ?? "");
  return hasCode(error, "ConnectionLost", "Timeout", "Aborted");
}

/** Whether a call that failed may succeed later. */
export function mayPass(error: unknown): boolean {
  return mayHaveArrived(error) || hasCode(error, "ConnectionFailed", "Unavailable", "TooManyRequests");
}

/** What a caller of a `DelegateClient` reads of an error. */
export function reasonOf(error: unknown): string {
  return error instanceof A2AError ? error.code : "an unknown error";
}

/** Agents answer with these before they begin to work on a message. */
const refusals: readonly A2AErrorCode[] = [
  ...(["ParseError", "InvalidRequest", "MethodNotFound", "MethodNotAllowed", "InvalidParams"] as const),
  ...(["Unauthenticated", "PermissionDenied", "TooManyRequests", "RequestTooLarge", "UnsupportedOperation"] as const),
  ...(["ContentTypeNotSupported", "ExtensionSupportRequired", "VersionNotSupported", "TaskNotFound"] as const),
];

/** Whether a message that was sent for the first time certainly did not make the other agent work: another one may be asked. */
export function wasRefused(error: unknown): boolean {
  if (hasCode(error, ...refusals)) return true;
  if (hasCode(error, "InvalidResponse")) return /^(?:404|405|3..)$/.test(error.metadata["httpStatus"] ?? "");
  return hasCode(error, "ConnectionFailed") && wasNeverSent(error);
}

/** Why a turn may be over although its delegations go on. */
export const goesOn: ReadonlySet<string> = new Set(["shutdown", "leaseLost", "storeFailed", "asking"]);
