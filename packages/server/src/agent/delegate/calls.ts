import { wasNeverSent } from "@parley/a2a/internal/base/http";
import {
  A2AError,
  type A2AErrorCode,
  hasCode,
  isTerminal,
  type Message,
  type SendMessageRequest,
  type StreamResponse,
  type Task,
} from "@parley/a2a/internal/model/index";
import {
  type DelegateCallOptions,
  type DelegateClient,
  type DelegateOptions,
  idempotentSendExtension,
  type OpenDelegation,
  resumeExtension,
  type TurnBase,
} from "@parley/a2a/internal/protocol/index";
import { pause } from "@parley/a2a/internal/base/async";

/* Errors of calls to another agent, and how the delegation reacts to them. */

/** A failed call to the other agent, as opposed to an error in this agent's function. */
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

/** Whether a failed call may succeed later. */
export function mayPass(error: unknown): boolean {
  return mayHaveArrived(error) || hasCode(error, "ConnectionFailed", "Unavailable", "TooManyRequests");
}

/** The part of an error that callers of a `DelegateClient` read. */
export function reasonOf(error: unknown): string {
  return error instanceof A2AError ? error.code : "an unknown error";
}

/** Errors which show that the agent has not started work on the message. */
const refusals: readonly A2AErrorCode[] = [
  ...(["ParseError", "InvalidRequest", "MethodNotFound", "MethodNotAllowed", "InvalidParams"] as const),
  ...(["Unauthenticated", "PermissionDenied", "TooManyRequests", "RequestTooLarge", "UnsupportedOperation"] as const),
  ...(["ContentTypeNotSupported", "ExtensionSupportRequired", "VersionNotSupported", "TaskNotFound"] as const),
];

/** Whether the other agent has certainly not worked on the first message, so that another agent may get it. */
export function wasRefused(error: unknown): boolean {
  if (hasCode(error, ...refusals)) return true;
  if (hasCode(error, "InvalidResponse")) return /^(?:404|405|3..)$/.test(error.metadata["httpStatus"] ?? "");
  return hasCode(error, "ConnectionFailed") && wasNeverSent(error);
}

/** Reasons for the end of a turn that do not end its delegations. */
export const outlivedReasons: ReadonlySet<string> = new Set(["shutdown", "leaseLost", "storeFailed", "asking"]);

/* Calls to the other agent: send, follow, find and cancel. */

/** An event of the other agent, and its `seq` if the agent sends one. */
export interface Came {
  readonly event: StreamResponse;
  readonly seq?: number | undefined;
}

/** Maximum agents that a message may pass through. */
const maxHops = 16;
/** Metadata of a send request: the agents it passed through. */
const hopsName = "urn:parley:metadata:hops";

/** Milliseconds. */
const cancelTimeout = 10_000;
const firstPoll = 500;
const longestPoll = 10_000;

/** If a stream ends before its task, how long to wait before the task is read, in milliseconds. */
export const betweenStreams = 1000;

const maxCancels = 6;
/** How long to retry an unreachable agent that has the task, in milliseconds. The client's own retries count. */
const outageBudget = 60_000;
const maxListPages = 5;

export class DelegateCalls {
  readonly client: DelegateClient;
  readonly #turn: TurnBase;
  readonly #options: DelegateOptions;
  readonly #signal: AbortSignal;
  readonly #extensions: readonly string[] | undefined;
  readonly #observed: string | undefined;

  /** `trace`: W3C `traceparent` of the observer's span for the delegation. */
  constructor(
    turn: TurnBase,
    client: DelegateClient,
    options: DelegateOptions,
    signal: AbortSignal,
    extensions: readonly string[] | undefined,
    trace?: string,
  ) {
    this.#extensions = extensions;
    this.#observed = trace;
    this.client = client;
    this.#turn = turn;
    this.#options = options;
    this.#signal = signal;
  }

  /** Whether the other agent deduplicates messages. */
  get joins(): boolean {
    return this.#promises(idempotentSendExtension);
  }

  /** How many agents this turn's message passed through; `undefined` if one more would be too many. */
  get hops(): number | undefined {
    const before = this.#turn.metadata?.[hopsName];
    const hops = (typeof before === "number" && before > 0 ? before : 0) + 1;
    return hops > maxHops ? undefined : hops;
  }

  /** Sends a message, and follows its task. */
  send(message: Message): AsyncGenerator<Came, void, void> {
    const request = this.#requestOf(message);
    if (this.#streams) return this.#read(() => this.client.sendStreamingMessage(request, this.#call()));
    return this.#sendAndPoll(request);
  }

  /** Follows a task, after the event `seq` if it is set. */
  follow({ taskId = "", seq }: OpenDelegation): AsyncGenerator<Came, void, void> {
    const after = seq !== undefined && this.#promises(resumeExtension) ? { after: seq } : {};
    if (!this.#streams) return this.poll(taskId);
    return this.#read(() => this.client.subscribeToTask(taskId, { ...this.#call(), ...after }), taskId);
  }

  /** Polls a task until it is over or asks. */
  async *poll(taskId: string): AsyncGenerator<Came, void, void> {
    for (let delay = firstPoll; ; delay = Math.min(longestPoll, delay * 1.5)) {
      const task = await this.task(taskId);
      yield { event: { task } };
      if (isTerminal(task.status.state) || task.status.state === "TASK_STATE_INPUT_REQUIRED") return;
      await this.pause(delay);
    }
  }

  task(taskId: string): Promise<Task> {
    return this.#again(() => this.client.getTask(taskId, this.#call()));
  }

  /** The task of a message that may have arrived; `false`: it did not arrive, `undefined`: unknown. */
  async find({ taskId, contextId, messageId, round }: OpenDelegation): Promise<string | false | undefined> {
    if (taskId !== undefined && round > 1) {
      const { history, status } = await this.task(taskId);
      if (
        status.state !== "TASK_STATE_INPUT_REQUIRED" ||
        history?.some((each) => each.messageId === messageId) === true
      ) {
        return taskId;
      }
      return history === undefined ? undefined : false;
    }
    if (contextId === undefined) return undefined;
    try {
      for (let page = 0, token = ""; page < maxListPages; page += 1) {
        const query = { contextId, historyLength: 100, ...(token !== "" && { pageToken: token }) };
        const { tasks, nextPageToken } = await this.#again(() => this.client.listTasks(query, this.#call()));
        const task = tasks.find(({ history = [] }) => history.some((each) => each.messageId === messageId));
        if (task !== undefined) return task.id;
        if (nextPageToken === "") break;
        token = nextPageToken;
      }
    } catch (error) {
      // Many agents cannot list tasks.
      if (!(error instanceof CallFailed)) throw error;
    }
    return undefined;
  }

  /** Cancels the task of a message, with retries. The call outlives the turn. */
  async cancel(row: OpenDelegation, message: Message | undefined): Promise<void> {
    const { clock, logger } = this.#turn;
    let cause: unknown;
    let taskId = row.taskId;
    for (let attempt = 0; attempt < maxCancels; attempt += 1) {
      if (attempt > 0) await pause(clock, 250 * 4 ** attempt);
      try {
        taskId ??= await this.#taskOf(row, message);
        if (taskId === undefined) break;
        await this.client.cancelTask(taskId, { timeout: cancelTimeout, ...this.#trace });
        return;
      } catch (error) {
        if (hasCode(error, "TaskNotCancelable", "TaskNotFound", "UnsupportedOperation")) return;
        cause = error;
      }
    }
    const fields = { delegate: row.agent, delegated: taskId, ...(cause !== undefined && { cause }) };
    logger.warn("Failed to cancel the task of another agent", fields);
  }

  /** Waits. Rejects if the delegation is abandoned or its turn has ended. */
  pause(ms: number): Promise<void> {
    return abortable(pause(this.#turn.clock, ms), this.#signal);
  }

  /** Waits for other work. Rejects in the same cases as `pause`. */
  until(work: Promise<void>): Promise<void> {
    return abortable(work, this.#signal);
  }

  /** Monotonic time, in milliseconds. */
  now(): number {
    return this.#turn.clock.elapsed();
  }

  /** Whether to retry an agent whose failures began at `since`. */
  mayRetry(since: number): boolean {
    return this.now() - since < outageBudget;
  }

  /** Waits after a failed attempt, longer each time. */
  rest(attempt: number): Promise<void> {
    return this.pause(Math.min(longestPoll, firstPoll * 2 ** (attempt - 1)));
  }

  /** The task of a sent message whose answer was not read. */
  async #taskOf({ contextId, messageId }: OpenDelegation, message: Message | undefined): Promise<string | undefined> {
    const options = { timeout: cancelTimeout, ...this.#trace };
    if (message !== undefined && this.joins) {
      const request = this.#requestOf(message);
      const configuration = { ...request.configuration, returnImmediately: true };
      return (await this.client.sendMessage({ ...request, configuration }, options)).task?.id;
    }
    if (contextId === undefined) return undefined;
    const { tasks } = await this.client.listTasks({ contextId, historyLength: 100 }, options);
    return tasks.find(({ history = [] }) => history.some((each) => each.messageId === messageId))?.id;
  }

  #promises(uri: string): boolean {
    return this.client.card.capabilities.extensions?.some((each) => each.uri === uri) === true;
  }

  get #streams(): boolean {
    return this.client.card.capabilities.streaming === true;
  }

  get #trace(): Pick<DelegateCallOptions, "trace"> {
    const trace = this.#observed ?? this.#turn.call.trace;
    return trace === undefined ? {} : { trace };
  }

  /** Options of a call. It has no timeout of its own, because the turn limits its time. */
  #call(): DelegateCallOptions {
    const asked = this.#extensions;
    return { signal: this.#signal, timeout: false, ...this.#trace, ...(asked !== undefined && { extensions: asked }) };
  }

  #requestOf(message: Message): SendMessageRequest {
    const { acceptedOutputModes, metadata } = this.#options;
    return {
      message,
      ...(acceptedOutputModes && { configuration: { acceptedOutputModes } }),
      metadata: { ...metadata, [hopsName]: this.hops ?? maxHops },
    };
  }

  async *#sendAndPoll(request: SendMessageRequest): AsyncGenerator<Came, void, void> {
    const configuration = { ...request.configuration, returnImmediately: true };
    const { task, message } = await this.#called(this.client.sendMessage({ ...request, configuration }, this.#call()));
    if (message !== undefined) yield { event: { message } };
    if (task === undefined) return;
    yield { event: { task } };
    if (!isTerminal(task.status.state) && task.status.state !== "TASK_STATE_INPUT_REQUIRED") yield* this.poll(task.id);
  }

  /** `taskId`: set for a subscription, which some agents reject once the task is terminal. */
  async *#read(
    open: () => ReturnType<DelegateClient["subscribeToTask"]>,
    taskId?: string,
  ): AsyncGenerator<Came, void, void> {
    const stream = open();
    const events = stream[Symbol.asyncIterator]();
    try {
      for (;;) {
        const step: IteratorResult<StreamResponse, unknown> = await this.#called(events.next());
        if (step.done === true) return;
        yield { event: step.value, seq: stream.seq };
      }
    } catch (error) {
      if (taskId === undefined || !(error instanceof CallFailed)) throw error;
      if (!hasCode(error.cause, "UnsupportedOperation", "InvalidParams", "InvalidRequest", "MethodNotFound"))
        throw error;
      yield* this.poll(taskId);
    } finally {
      // Not awaited: `return()` may wait for the network.
      void Promise.resolve(events.return?.()).catch(() => {});
    }
  }

  /** Reads, with retries while the agent is unreachable, for example during a restart. */
  async #again<T>(read: () => Promise<T>): Promise<T> {
    const since = this.now();
    for (let attempt = 1; ; attempt += 1) {
      try {
        return await this.#called(read());
      } catch (error) {
        if (!(error instanceof CallFailed) || !mayPass(error.cause) || !this.mayRetry(since)) throw error;
      }
      await this.rest(attempt);
    }
  }

  async #called<T>(call: Promise<T>): Promise<T> {
    return abortable(
      call.catch((error: unknown) => {
        throw this.#signal.aborted ? this.#signal.reason : new CallFailed(error);
      }),
      this.#signal,
    );
  }
}

/** Rejects when the signal fires, even if the client ignores the signal. */
async function abortable<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  let stop = (): void => {};
  const aborted = new Promise<never>((_, reject) => {
    stop = () => reject(signal.reason as Error);
    if (signal.aborted) stop();
    else signal.addEventListener("abort", stop);
  });
  try {
    return await Promise.race([promise, aborted]);
  } finally {
    signal.removeEventListener("abort", stop);
    promise.catch(() => {});
  }
}
