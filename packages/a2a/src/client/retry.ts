import type { Clock } from "../base/index.ts";
import { type A2AError, hasCode } from "../model/index.ts";
import { onAbort } from "../transport/http/index.ts";

/** How often and how soon something is tried again. Delays double from one try to the next, half of each by chance. */
export interface RetryPolicy {
  /** Tries in all, the first included; for a stream, tries in a row that brought nothing new. */
  readonly attempts: number;
  /** Milliseconds. */
  readonly minDelay: number;
  /** Milliseconds. */
  readonly maxDelay: number;
  /** The longest `Retry-After` that is waited for, in milliseconds; a longer one is the caller's to wait for. */
  readonly maxRetryAfter: number;
}

export const callPolicy: RetryPolicy = { attempts: 3, minDelay: 200, maxDelay: 5_000, maxRetryAfter: 30_000 };

export const streamPolicy: RetryPolicy = { attempts: 10, minDelay: 250, maxDelay: 30_000, maxRetryAfter: 300_000 };

/**
 * Waits after the try of this number, from 1, that ended with `error`; `tell` hears how long. Throws `error` where no
 * try is left, and what the signal says when it fires.
 */
export async function beforeRetry(
  clock: Clock,
  policy: RetryPolicy,
  attempt: number,
  error: A2AError,
  signal: AbortSignal | undefined,
  tell: (delay: number) => void,
): Promise<void> {
  const delay = delayAfter(policy, attempt, error);
  if (delay === undefined) throw error;
  tell(delay);
  await pause(clock, delay, signal);
}

/** `undefined`: it is over. */
function delayAfter(policy: RetryPolicy, attempt: number, error: A2AError): number | undefined {
  if (attempt >= policy.attempts) return undefined;
  const own = Math.min(policy.maxDelay, policy.minDelay * 2 ** (attempt - 1)) * (0.5 + Math.random() / 2);
  const asked = (error.retryAfter ?? 0) * 1000;
  return asked > policy.maxRetryAfter ? undefined : Math.max(own, asked);
}

/** Waits; throws what the signal says when it fires first. */
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

/** Whether the same request may fare better in a while. */
export function isTransient(error: unknown): error is A2AError {
  if (hasCode(error, "InvalidResponse")) return /^50[24]$/.test(error.metadata["httpStatus"] ?? "");
  return hasCode(error, "ConnectionFailed", "ConnectionLost", "Unavailable", "TooManyRequests");
}

/** Codes of Node and Bun for a connection that never came about. Browsers tell no such thing. */
const unsentCodes =
  /^(ECONNREFUSED|ENOTFOUND|EAI_AGAIN|E(?:HOST|NET)UNREACH|UND_ERR_CONNECT_TIMEOUT|ConnectionRefused|FailedToOpenSocket)$/;

/** Whether the peer certainly never saw the request: then it may be sent again, whatever it does. */
export function neverProcessed(error: A2AError): boolean {
  // What a peer says before it looks at what a request wants.
  if (hasCode(error, "TooManyRequests", "MethodNotAllowed", "MethodNotFound", "VersionNotSupported")) return true;
  if (error.code === "InvalidResponse") return /^(404|405|0|3..)$/.test(error.metadata["httpStatus"] ?? "");
  if (error.code !== "ConnectionFailed") return false;
  for (let cause: unknown = error.cause; cause instanceof Error; cause = cause.cause) {
    if ("code" in cause && unsentCodes.test(String(cause.code))) return true;
    // Deno tells it in words alone.
    if (cause.message.includes("client error (Connect)")) return true;
  }
  return false;
}
