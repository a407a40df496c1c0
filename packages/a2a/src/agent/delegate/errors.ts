import { A2AError, hasCode } from "../../model/index.ts";

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
