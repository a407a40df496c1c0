import type { Clock, Logger } from "../base/index.ts";
import { wasNeverSent } from "../base/unsent.ts";
import { A2AError, hasCode, isTerminal, type SendMessageRequest } from "../model/index.ts";
import {
  type AgentService,
  type CallContext,
  type OperationName,
  operations,
  type OperationTable,
  type StreamItem,
} from "../protocol/index.ts";
import { pause } from "../transport/client/signals.ts";

/** When something is tried again, and what an error says about that. */

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

/** Options of `resilient()`. */
export interface ResilientOptions {
  /** Measures delays. */
  readonly clock: Clock;
  /** Logs retries and reconnections. Default: nothing is logged. */
  readonly logger?: Logger | undefined;
  /** How calls are repeated. */
  readonly calls: RetryPolicy;
  /** How streams are reconnected. */
  readonly streams: RetryPolicy;
  /** Whether the server continues a subscription after `Last-Event-ID` (`resumeExtension`). */
  readonly canReplay: boolean;
  /** Whether the server joins a repeated message with the first one (`idempotentSendExtension`). */
  readonly canResend: boolean;
}

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

/** Whether a call may be repeated. A method of an extension says so itself. */
export function isIdempotent(operation: OperationName, { outgoing }: CallContext): boolean {
  return (outgoing?.method ?? (operations as OperationTable)[operation])?.idempotent === true;
}

/** Whether the same request may succeed later. */
export function isTransient(error: unknown): error is A2AError {
  if (hasCode(error, "InvalidResponse")) return /^50[24]$/.test(error.metadata["httpStatus"] ?? "");
  return hasCode(error, "ConnectionFailed", "ConnectionLost", "Unavailable", "TooManyRequests");
}

/** Whether the server certainly did not process the request. It may then be sent again, also where it is not safe to repeat. */
export function neverProcessed(error: A2AError): boolean {
  // Servers answer with these before they process a request.
  if (hasCode(error, "TooManyRequests", "MethodNotAllowed", "MethodNotFound", "VersionNotSupported")) return true;
  if (error.code === "InvalidResponse") return /^(404|405|0|3..)$/.test(error.metadata["httpStatus"] ?? "");
  return error.code === "ConnectionFailed" && wasNeverSent(error.cause);
}

/** Whether the error may mean that the task is finished. The first code is right (A2A 1.0 §3.1.6); some SDKs use the others. */
export function refusesFinished(error: unknown): error is A2AError {
  return hasCode(error, "UnsupportedOperation", "InvalidParams", "TaskNotFound", "InvalidRequest");
}

/** A call that took longer than this, in milliseconds, was a send that waited for its task. */
const longWait = 60_000;

/** Repeats calls that are safe to repeat, and finds out whether an error means that the task is finished. */
export class Calls {
  readonly #next: AgentService;
  readonly #options: ResilientOptions;

  constructor(next: AgentService, options: ResilientOptions) {
    this.#next = next;
    this.#options = options;
  }

  async repeat<T>(operation: OperationName, context: CallContext, run: () => Promise<T>): Promise<T> {
    const { clock, logger, calls, canResend } = this.#options;
    const safe = isIdempotent(operation, context) || (canResend && operation.startsWith("Send"));
    // Where an attempt may have arrived, a later one that did not says nothing about it.
    let told: A2AError | undefined;
    for (let attempt = 1; ; attempt++) {
      const since = clock.elapsed();
      try {
        return await run();
      } catch (thrown) {
        if (!isTransient(thrown) || !(safe || neverProcessed(thrown))) throw thrown;
        told = (neverProcessed(thrown) && told) || thrown;
        // A call that took this long was a send that waited for its task. Runtimes and proxies end such calls (Node's
        // fetch after 5 minutes). The next attempt is then as good as the first one.
        if (clock.elapsed() - since >= longWait) attempt = 1;
        await beforeRetry(clock, calls, attempt, told, context.signal, (delay) =>
          logger?.info("A call is repeated", { operation, attempt, delay, cause: thrown }),
        );
      }
    }
  }

  /** The task as the last batch of its stream, where it is finished. */
  async finishedTask(id: string, context: CallContext): Promise<readonly StreamItem[] | undefined> {
    try {
      const { payload } = await this.repeat("GetTask", context, () => this.#next.call("GetTask", { id }, context));
      return isTerminal(payload.value.status.state) ? [{ payload: payload.map((task) => ({ task })) }] : undefined;
    } catch (thrown) {
      if (hasCode(thrown, "Aborted", "Timeout")) throw thrown;
      return undefined;
    }
  }

  /** The error of a message to a finished task is `UnsupportedOperation` (A2A 1.0 §3.1.1), whatever code the server uses. */
  async meaning({ message }: Partial<SendMessageRequest>, error: unknown, context: CallContext): Promise<unknown> {
    const taskId = message?.taskId;
    if (!taskId || !refusesFinished(error) || error.fields.length > 0) return error;
    if (error.code === "UnsupportedOperation" || !(await this.finishedTask(taskId, context))) return error;
    return new A2AError("UnsupportedOperation", error.message, { metadata: error.metadata, cause: error });
  }
}
