import type { Clock } from "../base/index.ts";
import { type A2AError, hasCode } from "../model/index.ts";
import { onAbort } from "../transport/http/index.ts";

/** How often and how soon something is tried again. The delay doubles with each attempt, and half of it is random. */
export interface RetryPolicy {
  /** Most attempts, the first included. For a stream: attempts in a row without a new event. */
  readonly attempts: number;
  /** Delay before the second attempt, in milliseconds. */
  readonly minDelay: number;
  /** Longest delay, in milliseconds. */
  readonly maxDelay: number;
  /** Longest `Retry-After` of a server to wait for, in milliseconds. A longer one ends the attempts. */
  readonly maxRetryAfter: number;
}

export const callPolicy: RetryPolicy = { attempts: 3, minDelay: 200, maxDelay: 5_000, maxRetryAfter: 30_000 };

export const streamPolicy: RetryPolicy = { attempts: 10, minDelay: 250, maxDelay: 30_000, maxRetryAfter: 300_000 };

/**
 * Waits after an attempt that failed with `error`. `attempt` is its number, from 1; `tell` is called with the delay. Throws
 * `error` where no attempt is left, and the reason of the signal when that is aborted.
 */
export async function beforeRetry(
  clock: Clock,
  policy: RetryPolicy,
  attempt: number,
  error: A2AError,
  signal: AbortSignal | undefined,
  tell: (delay: number) => void,
): Promise<void> {
  const asked = (error.retryAfter ?? 0) * 1000;
  if (attempt >= policy.attempts || asked > policy.maxRetryAfter) throw error;
  const own = Math.min(policy.maxDelay, policy.minDelay * 2 ** (attempt - 1)) * (0.5 + Math.random() / 2);
  const delay = Math.max(own, asked);
  tell(delay);
  await pause(clock, delay, signal);
}

/** Waits. Throws the reason of the signal when that is aborted first. */
export function pause(clock: Clock, ms: number, signal: AbortSignal | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    const stop = clock.after(ms, () => {
      forget();
      resolve();
    });
    const forget = onAbort(signal, (error) => {
      stop();
      reject(error);
    });
  });
}

/** Whether the same request may succeed later. */
export function isTransient(error: unknown): error is A2AError {
  if (hasCode(error, "InvalidResponse")) return /^50[24]$/.test(error.metadata["httpStatus"] ?? "");
  return hasCode(error, "ConnectionFailed", "ConnectionLost", "Unavailable", "TooManyRequests");
}

/** Error codes of Node and Bun for a connection that was never made. Browsers do not tell. */
const unsentCodes =
  /^(ECONNREFUSED|ENOTFOUND|EAI_AGAIN|E(?:HOST|NET)UNREACH|UND_ERR_CONNECT_TIMEOUT|ConnectionRefused|FailedToOpenSocket)$/;

/** Whether the server certainly did not process the request. It may then be sent again, also where it is not safe to repeat. */
export function neverProcessed(error: A2AError): boolean {
  // Servers answer with these before they process a request.
  if (hasCode(error, "TooManyRequests", "MethodNotAllowed", "MethodNotFound", "VersionNotSupported")) return true;
  if (error.code === "InvalidResponse") return /^(404|405|0|3..)$/.test(error.metadata["httpStatus"] ?? "");
  if (error.code !== "ConnectionFailed") return false;
  for (let cause: unknown = error.cause; cause instanceof Error; cause = cause.cause) {
    if ("code" in cause && unsentCodes.test(String(cause.code))) return true;
    // Deno has no code for it, only a message.
    if (cause.message.includes("client error (Connect)")) return true;
  }
  return false;
}
