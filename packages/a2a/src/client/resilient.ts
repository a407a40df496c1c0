import { type Clock, type Logger, once } from "../base/index.ts";
import {
  A2AError,
  hasCode,
  isInterrupted,
  isTerminal,
  type SendMessageRequest,
  type Task,
  type TaskState,
} from "../model/index.ts";
import {
  type AgentService,
  type CallContext,
  closesAfter,
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

export interface ResilientOptions {
  readonly clock: Clock;
  /** Default: nobody is told. */
  readonly logger?: Logger | undefined;
  readonly calls: RetryPolicy;
  readonly streams: RetryPolicy;
  /** The card promises that a subscription continues after `Last-Event-ID`. */
  readonly canReplay: boolean;
  /** The card promises that a repeated message joins the first one. */
  readonly canResend: boolean;
}

/** Milliseconds. */
const longWait = 60_000;

/** Whether this may be said of a finished task: the first code is right (A2A 1.0 §3.1.6), servers of several SDKs say the others. */
export function refusesFinished(error: unknown): error is A2AError {
  return hasCode(error, "UnsupportedOperation", "InvalidParams", "TaskNotFound", "InvalidRequest");
}

/**
 * Makes a service survive what networks do (D4, D8): what is safe to repeat is repeated, and a stream that breaks is
 * taken up where it was, so that its reader sees every event once and in order.
 *
 * Where the card promises replay, the new connection continues after the last event. Elsewhere it begins with the Task
 * as it is by then, which comes as a `task` event and replaces what its reader knew. A task that ended meanwhile comes
 * as one `task` event.
 */
export function resilient(next: AgentService, options: ResilientOptions): AgentService {
  const { clock, logger, calls, streams, canReplay, canResend } = options;

  function mayRepeat(operation: OperationName, error: unknown): error is A2AError {
    if (!isTransient(error)) return false;
    if (operations[operation].idempotent || neverProcessed(error)) return true;
    return (operation === "SendMessage" || operation === "SendStreamingMessage") && canResend;
  }

  async function repeat<T>(operation: OperationName, context: CallContext, run: () => Promise<T>): Promise<T> {
    for (let attempt = 1; ; attempt++) {
      const since = clock.elapsed();
      try {
        return await run();
      } catch (thrown) {
        if (!mayRepeat(operation, thrown)) throw thrown;
        // What held for so long was a send that waits for its task; runtimes and proxies cut such waits off (Node's
        // fetch after 5 minutes), and that says nothing against the next one.
        if (clock.elapsed() - since >= longWait) attempt = 1;
        await beforeRetry(clock, calls, attempt, thrown, context.signal, (delay) =>
          logger?.info("A call is repeated", { operation, attempt, delay, cause: thrown }),
        );
      }
    }
  }

  /** The task, if it is over. */
  async function finishedTask(id: string, context: CallContext): Promise<Task | undefined> {
    try {
      const { value } = await repeat("GetTask", context, () => next.call("GetTask", { id }, context));
      return isTerminal(value.status.state) ? value : undefined;
    } catch (thrown) {
      if (hasCode(thrown, "Aborted", "Timeout")) throw thrown;
      return undefined;
    }
  }

  /** The task of a subscription that was refused because it is over; throws the refusal where that is not why. */
  async function insteadOf(error: unknown, id: string, context: CallContext): Promise<readonly StreamItem[]> {
    const task = refusesFinished(error) ? await finishedTask(id, context) : undefined;
    if (task === undefined) throw error;
    return [{ event: { task } }];
  }

  /** A message, if it is one, to a finished task is UnsupportedOperation (§3.1.1), whatever the peer calls it. */
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
    /** Tries in a row that brought nothing new. */
    let attempt = 0;

    for (let resumed = false; ; resumed = true) {
      let opening = resumed;
      let fresh = false;
      /** When the connection stood; `undefined`: it never did. */
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
            const { seq, event } = item;
            const snapshot = opening && event.task !== undefined;
            opening = false;
            if (snapshot) cursor = undefined;
            else if (seq !== undefined && cursor !== undefined && seq <= cursor) continue;
            if (canReplay && seq !== undefined) cursor = seq;
            fresh ||= !snapshot;
            taskId ??= event.task?.id ?? event.statusUpdate?.taskId ?? event.artifactUpdate?.taskId;
            state = event.task?.status.state ?? event.statusUpdate?.status.state ?? state;
            news.push(item);
            // The binding judged by the operation that opened the connection, which is another one by now.
            over = resumed && closesAfter(event, operation);
            if (over) break;
          }
          if (news.length > 0) yield news;
          if (over) return;
        }
        // A server that replays keeps a subscription open while its task is interrupted: if it ends there, it broke.
        const open = operation === "SubscribeToTask" && state !== undefined && isInterrupted(state);
        if (!canReplay || !open) return;
        error = new A2AError("ConnectionLost", "The stream ended before its task did");
      } catch (thrown) {
        if (context.signal?.aborted) throw thrown;
        if (!isBreak(thrown)) {
          // Some servers refuse with the first event of a stream.
          const subscribed = resumed || !("message" in request);
          if (taskId === undefined || !subscribed) throw await meaning(request, thrown, context);
          yield await insteadOf(thrown, taskId, context);
          return;
        }
        error = thrown;
      }
      if (since !== undefined) {
        if (taskId !== undefined && state === undefined && (error.cause === undefined || !canReplay)) {
          // It closed in good order without a word: so does the stream of a finished task that its reader knows all of.
          // Who cannot replay may also break off there.
          const task = await finishedTask(taskId, context);
          if (task !== undefined) {
            yield [{ event: { task } }];
            return;
          }
        }
        if (fresh || clock.elapsed() - since >= streams.maxDelay) attempt = 0;
      }
      attempt++;
      // Nothing has come: nobody knows whether the message arrived.
      if (taskId === undefined && !canResend) throw error;
      await beforeRetry(clock, streams, attempt, error, context.signal, (delay) =>
        logger?.info("A stream broke and is taken up again", { operation, taskId, attempt, delay, cause: error }),
      );
    }
  }

  return {
    async call<Name extends UnaryName>(
      operation: Name,
      request: UnaryOperations[Name]["request"],
      { signal, ...rest }: CallContext,
    ) {
      // A plain one: interceptors spread it, and a server's makes its signal when that is asked for.
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
      // Nobody knows what another server's ids mean (D4).
      const known = { ...rest, signal: own.signal, after: canReplay ? after : undefined };
      try {
        const reply = await open(operation, request, known);
        // Letting go works at any time: before the first event, and while one is waited for.
        const letGo = async (): Promise<void> => {
          own.abort(new A2AError("Aborted", "The reader let go of the stream"));
          await reply.batches[Symbol.asyncIterator]().return?.();
        };
        return { ...reply, batches: finishing(survive(operation, request, known, reply), release, letGo) };
      } catch (thrown) {
        release();
        throw thrown;
      }
    },
  };
}

/** Whether a stream may be taken up again after this: a limit of one connection is no limit of the whole. */
function isBreak(error: unknown): error is A2AError {
  return isTransient(error) || hasCode(error, "Timeout");
}
