import type { Clock, Logger } from "../base/index.ts";
import { cannotConnect, wasNeverSent } from "../base/http.ts";
import { A2AError, type A2AErrorOptions, hasCode, isTerminal, type SendMessageRequest } from "../model/index.ts";
import {
  type AgentService,
  type CallContext,
  type ObservedRetry,
  type Observer,
  type OperationName,
  coreInfo,
  type StreamItem,
} from "../protocol/index.ts";
import { pause } from "../transport/client/signals.ts";

/** Decides when a client retries, how long it waits, and which error it throws when it gives up. */

/** How long and how often a client retries. The delay doubles with each attempt; half of the delay is random. */
export interface RetryPolicy {
  /**
   * How long to retry after the first failure, in milliseconds; `Infinity` never gives up. No attempt starts after this time.
   * A `Retry-After` beyond this time ends the retries immediately. For a stream, each new event restarts the budget.
   */
  readonly budget: number;
  /** Delay before the first retry, in milliseconds. */
  readonly minDelay: number;
  /** Maximum delay, in milliseconds. A `Retry-After` may be longer. */
  readonly maxDelay: number;
}

export const callPolicy: RetryPolicy = { budget: 30_000, minDelay: 200, maxDelay: 5_000 };

export const streamPolicy: RetryPolicy = { budget: 120_000, minDelay: 250, maxDelay: 10_000 };

/** Dependencies of the retries. */
interface RetryDeps {
  /** Measures the delays. */
  readonly clock: Clock;
  /** Logs retries and reconnections. Default: nothing is logged. */
  readonly logger?: Logger | undefined;
  /** Called before each wait (`Observer.retry`). Default: none. */
  readonly observer?: Observer | undefined;
}

/** Options of `resilient()`. */
export interface ResilientOptions extends RetryDeps {
  /** Retries of calls. */
  readonly calls: RetryPolicy;
  /** Reconnections of streams. */
  readonly streams: RetryPolicy;
  /** Whether the server continues a subscription after `Last-Event-ID` (`resumeExtension`). */
  readonly canReplay: boolean;
  /** Whether the server deduplicates repeated messages (`idempotentSendExtension`). */
  readonly canResend: boolean;
}

/** The same error with another message, and more metadata. */
export function reworded(error: A2AError, message: string, metadata?: Readonly<Record<string, string>>): A2AError {
  const options: A2AErrorOptions = error;
  return new A2AError(error.code, message, { ...options, metadata: { ...error.metadata, ...metadata }, cause: error });
}

const seconds = (ms: number): string => `${Math.round(ms / 100) / 10} s`;

/** Consecutive failures of a call or stream. Waits between attempts until the budget is spent. */
export class Backoff {
  readonly #deps: RetryDeps;
  readonly #policy: RetryPolicy;
  readonly #operation: ObservedRetry["operation"];
  #attempt = 0;
  /** Time of the first failure. */
  #since = 0;
  #last: A2AError | undefined;

  constructor(deps: RetryDeps, policy: RetryPolicy, operation: ObservedRetry["operation"]) {
    this.#deps = deps;
    this.#policy = policy;
    this.#operation = operation;
  }

  /** Restarts the budget, because the server has answered. */
  reset(): void {
    this.#attempt = 0;
  }

  /**
   * Waits after a failed attempt. Throws when the budget is spent, and when the signal is aborted.
   *
   * @param error - Thrown when no attempt is left. Default: the failure itself.
   */
  async wait(
    failure: A2AError,
    signal: AbortSignal | undefined,
    taskId?: string,
    error: A2AError = failure,
  ): Promise<void> {
    const { clock, logger, observer } = this.#deps;
    const { budget, minDelay, maxDelay } = this.#policy;
    const now = clock.elapsed();
    if (this.#attempt++ === 0) this.#since = now;
    const attempt = this.#attempt;
    const elapsed = now - this.#since;
    const left = budget - elapsed;
    const asked = (failure.retryAfter ?? 0) * 1000;
    const asksTooMuch = left > 0 && asked > left;
    if (left <= 0 || asksTooMuch) {
      if (budget <= 0) throw error;
      const tried = attempt > 1 ? `gave up after ${attempt} attempts in ${seconds(elapsed)}` : "not retried";
      const why = asksTooMuch ? `: Retry-After is ${seconds(asked)}, the retry budget ${seconds(budget)}` : "";
      throw reworded(error, `${error.message} (${tried}${why})`);
    }
    this.#last = error;
    const own = Math.min(maxDelay, minDelay * 2 ** (attempt - 1)) * (0.5 + Math.random() / 2);
    const delay = Math.min(left, Math.max(own, asked));
    const about = { operation: this.#operation, ...(taskId && { taskId }), attempt, elapsed, delay };
    logger?.info(taskId ? "Stream broke; reconnecting" : "Request failed; retrying", { ...about, cause: failure });
    observer?.retry?.({ ...about, error: failure });
    try {
      await pause(clock, delay, signal);
    } catch (thrown) {
      throw this.ended(thrown);
    }
  }

  /** The error of a later attempt. A timeout error also has the previous failure. */
  ended(thrown: unknown): unknown {
    const last = this.#last;
    return last && hasCode(thrown, "Timeout") ? reworded(thrown, `${thrown.message}; before: ${last.message}`) : thrown;
  }
}

/** Whether a call may be repeated. Extension methods declare this themselves. */
export function isIdempotent(operation: OperationName, { outgoing }: CallContext): boolean {
  return (outgoing?.method ?? coreInfo(operation))?.idempotent === true;
}

/** Whether the same request may succeed later. */
export function isTransient(error: unknown): error is A2AError {
  if (hasCode(error, "InvalidResponse")) return /^50[24]$/.test(error.metadata["httpStatus"] ?? "");
  if (hasCode(error, "ConnectionFailed")) return !cannotConnect(error.cause);
  return hasCode(error, "ConnectionLost", "Unavailable", "TooManyRequests");
}

/** Whether the server certainly did not process the request, so that even an unsafe request can be sent again. */
export function neverProcessed(error: A2AError): boolean {
  // Servers answer with these errors before they process a request.
  if (hasCode(error, "TooManyRequests", "MethodNotAllowed", "MethodNotFound", "VersionNotSupported")) return true;
  if (error.code === "InvalidResponse") return /^(404|405|0|3..)$/.test(error.metadata["httpStatus"] ?? "");
  return error.code === "ConnectionFailed" && wasNeverSent(error.cause);
}

/** Whether the error may mean that the task is finished. A2A 1.0 §3.1.6 demands the first code; some SDKs use the other codes. */
export function refusesFinished(error: unknown): error is A2AError {
  return hasCode(error, "UnsupportedOperation", "InvalidParams", "TaskNotFound", "InvalidRequest");
}

/** A call that took longer than this, in milliseconds, was a send that waited for its task. */
const longWait = 60_000;

/** Retries calls that are safe to repeat, and checks whether an error means that the task is finished. */
export class Calls {
  readonly #next: AgentService;
  readonly #options: ResilientOptions;

  constructor(next: AgentService, options: ResilientOptions) {
    this.#next = next;
    this.#options = options;
  }

  async repeat<T>(operation: OperationName, context: CallContext, run: () => Promise<T>): Promise<T> {
    const { clock, calls, canResend } = this.#options;
    const safe = isIdempotent(operation, context) || (canResend && operation.startsWith("Send"));
    const backoff = new Backoff(this.#options, calls, operation);
    // The error to throw in the end. The error of an attempt that may have reached the server takes precedence over later attempts that did not.
    let told: A2AError | undefined;
    for (;;) {
      const since = clock.elapsed();
      try {
        return await run();
      } catch (thrown) {
        if (!isTransient(thrown) || !(safe || neverProcessed(thrown))) throw backoff.ended(thrown);
        told = (neverProcessed(thrown) && told) || thrown;
        // A call that took this long was a send that waited for its task, until a runtime or proxy ended it (Node's fetch after 5 minutes).
        if (clock.elapsed() - since >= longWait) backoff.reset();
        await backoff.wait(thrown, context.signal, undefined, told);
      }
    }
  }

  /** The task as the last batch of its stream, if it is finished. */
  async finishedTask(id: string, context: CallContext): Promise<readonly StreamItem[] | undefined> {
    try {
      const { payload } = await this.repeat("GetTask", context, () => this.#next.call("GetTask", { id }, context));
      return isTerminal(payload.value.status.state) ? [{ payload: payload.map((task) => ({ task })) }] : undefined;
    } catch (thrown) {
      if (hasCode(thrown, "Aborted", "Timeout")) throw thrown;
      return undefined;
    }
  }

  /** The error of a message to a finished task is `UnsupportedOperation` (A2A 1.0 §3.1.1), even if the server uses another code. */
  async meaning({ message }: Partial<SendMessageRequest>, error: unknown, context: CallContext): Promise<unknown> {
    const taskId = message?.taskId;
    if (!taskId || !refusesFinished(error) || error.fields.length > 0) return error;
    if (error.code === "UnsupportedOperation" || !(await this.finishedTask(taskId, context))) return error;
    return new A2AError("UnsupportedOperation", error.message, { metadata: error.metadata, cause: error });
  }
}
