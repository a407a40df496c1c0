import { once } from "../base/index.ts";
import { A2AError, hasCode, isInterrupted, type TaskState } from "../model/index.ts";
import {
  type AgentService,
  type CallContext,
  closesAfter,
  finishing,
  type Operations,
  type Reply,
  stateOf,
  type StreamItem,
  type StreamName,
  type StreamOperations,
  type StreamReply,
  type UnaryName,
  type UnaryOperations,
} from "../protocol/index.ts";
import { follow } from "../transport/client/signals.ts";
import { Backoff, Calls, isTransient, neverProcessed, refusesFinished, type ResilientOptions } from "./retry.ts";

/**
 * Wraps a service so that it survives network failures. It retries calls that are safe to repeat, and reconnects broken
 * streams, whose readers get every event once and in order.
 *
 * If the server can replay, the new connection continues after the last event. Otherwise the new connection begins with a
 * `task` event with the current task, which replaces the reader's state. If the task has ended meanwhile, this is the only event.
 */
export function resilient(next: AgentService, options: ResilientOptions): AgentService {
  const calls = new Calls(next, options);
  return {
    async call<Name extends UnaryName>(
      operation: Name,
      request: UnaryOperations[Name]["request"],
      { signal, ...rest }: CallContext,
    ) {
      // A plain object, because interceptors spread it. The signal of a server's context is made when it is first read.
      const context = { ...rest, signal };
      try {
        return await calls.repeat<Reply<Operations[Name]["response"]>>(operation, context, () =>
          next.call(operation, request, context),
        );
      } catch (thrown) {
        throw await calls.meaning(request, thrown, context);
      }
    },
    async stream(operation, request, { after, signal, ...rest }) {
      const { own, release } = follow(signal);
      // Event ids are not cursors if the server cannot replay.
      const context = { ...rest, signal: own.signal, after: options.canReplay ? after : undefined };
      const stream = new ResilientStream(next, options, calls, operation, request, context);
      try {
        const reply = await stream.open();
        // A reader can leave at any time, even before the first event and while a read waits.
        const close = async (): Promise<void> => {
          own.abort(new A2AError("Aborted", "The stream was closed"));
          await reply.batches[Symbol.asyncIterator]().return?.();
        };
        return { ...reply, batches: finishing(stream.read(reply.batches), release, close) };
      } catch (thrown) {
        release();
        throw thrown;
      }
    },
  };
}

type Batch = readonly StreamItem[];

/**
 * One stream over any number of connections. If a connection is lost, the stream waits, subscribes again after the last event, and
 * drops events that the reader already has.
 */
class ResilientStream<Name extends StreamName> {
  readonly #next: AgentService;
  readonly #options: ResilientOptions;
  readonly #calls: Calls;
  readonly #operation: Name;
  readonly #request: StreamOperations[Name]["request"];
  readonly #context: CallContext;
  #taskId: string | undefined;
  #state: TaskState | undefined;
  /** Number of the last event, if the server can replay. */
  #cursor: number | undefined;
  /** Backoff over consecutive connections without a new event. */
  readonly #backoff: Backoff;
  #resumed = false;
  #over = false;
  /** State of the current connection: when it opened, whether it is still without an event, and whether a new event has arrived. */
  #openSince: number | undefined;
  #opening = false;
  #fresh = false;
  /** The last task as JSON, if no other event followed it. */
  #snapshot: string | undefined;
  #error: A2AError | undefined;

  constructor(
    next: AgentService,
    options: ResilientOptions,
    calls: Calls,
    operation: Name,
    request: StreamOperations[Name]["request"],
    context: CallContext,
  ) {
    this.#next = next;
    this.#options = options;
    this.#calls = calls;
    this.#operation = operation;
    this.#request = request;
    this.#context = context;
    this.#backoff = new Backoff(options, options.streams, operation);
    if (!("message" in request)) this.#taskId = request.id;
    if (options.canReplay) this.#cursor = context.after;
  }

  /** Opens the first connection. For a finished task, the task is the whole stream. */
  async open(): Promise<StreamReply> {
    const send = (): Promise<StreamReply> => this.#next.stream(this.#operation, this.#request, this.#context);
    try {
      return await this.#calls.repeat(this.#operation, this.#context, send);
    } catch (thrown) {
      return { batches: once(await this.#insteadOf(thrown)) };
    }
  }

  async *read(opened: StreamReply["batches"]): AsyncGenerator<Batch, void, void> {
    for (let batches: StreamReply["batches"] | undefined = opened; ; batches = undefined) {
      this.#openSince = undefined;
      let error: unknown;
      try {
        batches ??= await this.#reconnect();
        this.#openSince = this.#options.clock.elapsed();
        for await (const batch of batches) {
          const unseen = this.#unseen(batch);
          if (unseen.length > 0) yield unseen;
          if (this.#over) return;
        }
        if (!this.#isBroken()) return;
        error = new A2AError("ConnectionLost", "The stream ended before its task did");
      } catch (thrown) {
        if (this.#context.signal?.aborted) throw thrown;
        error = thrown;
      }
      const last = await this.#lastBatch(error);
      if (last !== undefined) {
        yield last;
        return;
      }
      await this.#wait(error as A2AError);
    }
  }

  async #reconnect(): Promise<StreamReply["batches"]> {
    this.#resumed = this.#opening = true;
    this.#fresh = false;
    const id = this.#taskId;
    const { batches } = await (id === undefined
      ? this.#next.stream(this.#operation, this.#request, this.#context)
      : this.#next.stream("SubscribeToTask", { id }, { ...this.#context, after: this.#cursor }));
    return batches;
  }

  #unseen(batch: Batch): Batch {
    const unseen: StreamItem[] = [];
    for (const item of batch) {
      if (!this.#isNew(item)) continue;
      unseen.push(item);
      // The binding uses the opening operation to decide when a stream ends, but a reconnection uses a different operation.
      this.#over = this.#resumed && closesAfter(item.payload.value, this.#operation);
      if (this.#over) break;
    }
    return unseen;
  }

  #isNew({ seq, payload }: StreamItem): boolean {
    const event = payload.value;
    const snapshot = this.#opening && event.task !== undefined;
    this.#opening = false;
    if (snapshot) this.#cursor = undefined;
    else if (seq !== undefined && this.#cursor !== undefined && seq <= this.#cursor) return false;
    // Over gRPC, events have no numbers. After an event, forget the caller's number, because a replay from there would repeat that event.
    if (this.#options.canReplay) this.#cursor = seq;
    const before = this.#snapshot;
    this.#snapshot = event.task && payload.json;
    // A snapshot may repeat earlier events.
    this.#fresh ||= !snapshot || (!!before && before !== this.#snapshot);
    this.#taskId ??= event.task?.id ?? event.statusUpdate?.taskId ?? event.artifactUpdate?.taskId;
    this.#state = stateOf(event) ?? this.#state;
    return true;
  }

  /** Whether a clean end means a lost connection. True for an interrupted task if the server can replay: such a server keeps the stream open. */
  #isBroken(): boolean {
    const { canReplay } = this.#options;
    return (
      canReplay && this.#operation === "SubscribeToTask" && this.#state !== undefined && isInterrupted(this.#state)
    );
  }

  /** The last batch, if the task is finished; `undefined` if a new connection may help. Otherwise throws the error. */
  async #lastBatch(error: unknown): Promise<Batch | undefined> {
    // Streams are also reconnected after a timeout, because this timeout is of the connection, not of the call.
    if (!isTransient(error) && !hasCode(error, "Timeout")) return this.#insteadOf(error);
    if (this.#openSince === undefined || this.#taskId === undefined || this.#state !== undefined) return undefined;
    // The stream closed without an event, which happens for a finished task if the reader has all of its events. A server that cannot replay may
    // break the connection instead.
    const closed = error.cause === undefined || !this.#options.canReplay;
    return closed ? this.#calls.finishedTask(this.#taskId, this.#context) : undefined;
  }

  /** The last batch, if a subscription failed because the task is finished. Otherwise throws the error. */
  async #insteadOf(error: unknown): Promise<Batch> {
    const id = this.#taskId;
    // Some servers reject a message with the first event of its stream.
    const subscribes = this.#resumed || !("message" in this.#request);
    if (id === undefined || !subscribes) throw await this.#calls.meaning(this.#request, error, this.#context);
    const batch = refusesFinished(error) && (await this.#calls.finishedTask(id, this.#context));
    if (batch) return batch;
    throw error;
  }

  /** Waits before the next connection. Throws the error if no attempts are left. */
  async #wait(error: A2AError): Promise<void> {
    const { clock, streams, canResend } = this.#options;
    const since = this.#openSince;
    if (since !== undefined && (this.#fresh || clock.elapsed() - since >= streams.maxDelay)) this.#backoff.reset();
    // If no event has arrived, it is unknown whether the message arrived.
    if (this.#taskId === undefined && !canResend) throw error;
    // The message may have arrived, although a later connection failed.
    this.#error = (neverProcessed(error) && this.#error) || error;
    await this.#backoff.wait(error, this.#context.signal, this.#taskId, this.#error);
  }
}
