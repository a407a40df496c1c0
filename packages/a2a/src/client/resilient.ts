import { type Clock, type Logger, once } from "../base/index.ts";
import {
  A2AError,
  hasCode,
  isInterrupted,
  isTerminal,
  type SendMessageRequest,
  type TaskState,
} from "../model/index.ts";
import {
  type AgentService,
  type CallContext,
  closesAfter,
  stateOf,
  type OperationName,
  operations,
  type Operations,
  type Reply,
  type StreamItem,
  type StreamName,
  type StreamOperations,
  type StreamReply,
  type UnaryName,
  type UnaryOperations,
} from "../protocol/index.ts";
import { finishing } from "../transport/http/index.ts";
import { follow } from "./bounded.ts";
import { beforeRetry, isTransient, neverProcessed, type RetryPolicy } from "./retry.ts";

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

/** A call that took longer than this, in milliseconds, was a send that waited for its task. */
const longWait = 60_000;

/** Whether the error may mean that the task is finished. The first code is right (A2A 1.0 §3.1.6); some SDKs use the others. */
export function refusesFinished(error: unknown): error is A2AError {
  return hasCode(error, "UnsupportedOperation", "InvalidParams", "TaskNotFound", "InvalidRequest");
}

/**
 * Wraps a service so that it survives network failures. Calls that are safe to repeat are repeated. A stream that breaks
 * is reconnected, and its reader gets every event once and in order.
 *
 * Where the server can replay, the new connection continues after the last event. Elsewhere it begins with the current
 * task: a `task` event, which replaces what the reader had. A task that ended in the meantime is one `task` event.
 */
export function resilient(next: AgentService, options: ResilientOptions): AgentService {
  const { clock, logger, calls, streams, canReplay, canResend } = options;

  function mayRepeat(operation: OperationName, error: unknown): error is A2AError {
    if (!isTransient(error)) return false;
    if (operations[operation].idempotent || neverProcessed(error)) return true;
    return canResend && operation.startsWith("Send");
  }

  async function repeat<T>(operation: OperationName, context: CallContext, run: () => Promise<T>): Promise<T> {
    for (let attempt = 1; ; attempt++) {
      const since = clock.elapsed();
      try {
        return await run();
      } catch (thrown) {
        if (!mayRepeat(operation, thrown)) throw thrown;
        // A call that took this long was a send that waited for its task. Runtimes and proxies end such calls (Node's
        // fetch after 5 minutes). The next attempt is then as good as the first one.
        if (clock.elapsed() - since >= longWait) attempt = 1;
        await beforeRetry(clock, calls, attempt, thrown, context.signal, (delay) =>
          logger?.info("A call is repeated", { operation, attempt, delay, cause: thrown }),
        );
      }
    }
  }

  /** The task as the last batch of its stream, where it is finished. */
  async function finishedTask(id: string, context: CallContext): Promise<readonly StreamItem[] | undefined> {
    try {
      const { payload } = await repeat("GetTask", context, () => next.call("GetTask", { id }, context));
      return isTerminal(payload.value.status.state) ? [{ payload: payload.map((task) => ({ task })) }] : undefined;
    } catch (thrown) {
      if (hasCode(thrown, "Aborted", "Timeout")) throw thrown;
      return undefined;
    }
  }

  /** The event for a subscription that was refused because its task is finished. Throws the error where that is not the reason. */
  async function insteadOf(error: unknown, id: string, context: CallContext): Promise<readonly StreamItem[]> {
    const batch = refusesFinished(error) && (await finishedTask(id, context));
    if (batch) return batch;
    throw error;
  }

  /** The error of a message to a finished task is `UnsupportedOperation` (A2A 1.0 §3.1.1), whatever code the server uses. */
  async function meaning(request: Partial<SendMessageRequest>, error: unknown, context: CallContext): Promise<unknown> {
    const taskId = request.message?.taskId;
    if (taskId === undefined || !refusesFinished(error) || error.fields.length > 0) return error;
    if (error.code === "UnsupportedOperation" || (await finishedTask(taskId, context)) === undefined) return error;
    return new A2AError("UnsupportedOperation", error.message, { metadata: error.metadata, cause: error });
  }

  async function open<Name extends StreamName>(
    operation: Name,
    request: StreamOperations[Name]["request"],
    context: CallContext,
  ): Promise<StreamReply> {
    try {
      return await repeat(operation, context, () => next.stream(operation, request, context));
    } catch (thrown) {
      if ("message" in request) throw await meaning(request, thrown, context);
      return { batches: once(await insteadOf(thrown, request.id, context)) };
    }
  }

  async function* survive<Name extends StreamName>(
    operation: Name,
    request: StreamOperations[Name]["request"],
    context: CallContext,
    first: StreamReply,
  ): AsyncGenerator<readonly StreamItem[], void, void> {
    let { batches } = first;
    let taskId = "message" in request ? undefined : request.id;
    let cursor = canReplay ? context.after : undefined;
    let state: TaskState | undefined;
    /** Attempts in a row without a new event. */
    let attempt = 0;

    for (let resumed = false; ; resumed = true) {
      let opening = resumed;
      let fresh = false;
      /** When the connection was made; `undefined` where it was not. */
      let since: number | undefined;
      let error: A2AError;
      try {
        if (resumed) {
          ({ batches } = await (taskId === undefined
            ? next.stream(operation, request, context)
            : next.stream("SubscribeToTask", { id: taskId }, { ...context, after: cursor })));
        }
        since = clock.elapsed();
        for await (const batch of batches) {
          const news: StreamItem[] = [];
          let over = false;
          for (const item of batch) {
            const { seq, payload } = item;
            const event = payload.value;
            const snapshot = opening && event.task !== undefined;
            opening = false;
            if (snapshot) cursor = undefined;
            else if (seq !== undefined && cursor !== undefined && seq <= cursor) continue;
            if (canReplay && seq !== undefined) cursor = seq;
            fresh ||= !snapshot;
            taskId ??= event.task?.id ?? event.statusUpdate?.taskId ?? event.artifactUpdate?.taskId;
            state = stateOf(event) ?? state;
            news.push(item);
            // The binding ends a stream by the operation that opened it, which is another one after a reconnection.
            over = resumed && closesAfter(event, operation);
            if (over) break;
          }
          if (news.length > 0) yield news;
          if (over) return;
        }
        // A server that can replay keeps a subscription open while its task is interrupted: an end means that it broke.
        const open = operation === "SubscribeToTask" && state !== undefined && isInterrupted(state);
        if (!canReplay || !open) return;
        error = new A2AError("ConnectionLost", "The stream ended before its task did");
      } catch (thrown) {
        if (context.signal?.aborted) throw thrown;
        // A stream may be reconnected after a timeout too: it is one of the connection here, not of the whole call.
        if (!isTransient(thrown) && !hasCode(thrown, "Timeout")) {
          // Some servers refuse a request with the first event of a stream.
          const subscribed = resumed || !("message" in request);
          if (taskId === undefined || !subscribed) throw await meaning(request, thrown, context);
          yield await insteadOf(thrown, taskId, context);
          return;
        }
        error = thrown;
      }
      if (since !== undefined) {
        if (taskId !== undefined && state === undefined && (error.cause === undefined || !canReplay)) {
          // The stream closed without an event: so does that of a finished task when the reader has all of its events.
          // A server that cannot replay may also break off here.
          const batch = await finishedTask(taskId, context);
          if (batch !== undefined) {
            yield batch;
            return;
          }
        }
        if (fresh || clock.elapsed() - since >= streams.maxDelay) attempt = 0;
      }
      attempt++;
      // There was no event, so it is not known whether the message arrived.
      if (taskId === undefined && !canResend) throw error;
      await beforeRetry(clock, streams, attempt, error, context.signal, (delay) =>
        logger?.info("A stream broke and is reconnected", { operation, taskId, attempt, delay, cause: error }),
      );
    }
  }

  return {
    async call<Name extends UnaryName>(
      operation: Name,
      request: UnaryOperations[Name]["request"],
      { signal, ...rest }: CallContext,
    ) {
      // A plain object, because interceptors spread it. The signal of a server's context is made when it is first read.
      const context = { ...rest, signal };
      try {
        return await repeat<Reply<Operations[Name]["response"]>>(operation, context, () =>
          next.call(operation, request, context),
        );
      } catch (thrown) {
        throw await meaning(request, thrown, context);
      }
    },
    async stream(operation, request, { after, signal, ...rest }) {
      const { own, release } = follow(signal);
      // The event ids of other servers may mean anything.
      const known = { ...rest, signal: own.signal, after: canReplay ? after : undefined };
      try {
        const reply = await open(operation, request, known);
        // A stream can be closed at any time: before its first event, and while a read waits.
        const close = async (): Promise<void> => {
          own.abort(new A2AError("Aborted", "The reader closed the stream"));
          await reply.batches[Symbol.asyncIterator]().return?.();
        };
        return { ...reply, batches: finishing(survive(operation, request, known, reply), release, close) };
      } catch (thrown) {
        release();
        throw thrown;
      }
    },
  };
}
