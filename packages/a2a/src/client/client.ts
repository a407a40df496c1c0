import type { Clock, Ids } from "../base/index.ts";
import {
  A2AError,
  type AgentCard,
  type AgentInterface,
  type CancelTaskRequest,
  type DeleteTaskPushNotificationConfigRequest,
  type GetTaskPushNotificationConfigRequest,
  type GetTaskRequest,
  type GetTaskRequestDraft,
  type ListTaskPushNotificationConfigsRequest,
  type ListTaskPushNotificationConfigsResponse,
  type ListTasksRequest,
  type ListTasksResponse,
  type SendMessageResponse,
  stateKinds,
  type StreamResponse,
  type SubscribeToTaskRequest,
  type Task,
  type TaskPushNotificationConfig,
} from "../model/index.ts";
import {
  type AgentService,
  anonymous,
  type CallContext,
  type OperationName,
  operations,
  type Outgoing,
  type StreamName,
  type StreamOperations,
  type UnaryName,
  type UnaryOperations,
} from "../protocol/index.ts";
import { finishing } from "../transport/http/index.ts";
import { type Bounded, bounded } from "./bounded.ts";
import { type SendInput, toSendRequest } from "./content.ts";
import { Conversation, type ConversationInit } from "./conversation.ts";
import { EventStream } from "./stream.ts";
import { waitForTask } from "./wait.ts";

/** What each call may say for itself; what it does not say is the client's own. */
export interface CallOptions extends Outgoing {
  readonly signal?: AbortSignal | undefined;
  /** The whole call, tries and streams included, in milliseconds. `false`: no limit. */
  readonly timeout?: number | false;
  /** Extension URIs to ask for, beside those of the client (A2A 1.0 §4.6). */
  readonly extensions?: readonly string[];
  /** W3C `traceparent`. */
  readonly trace?: string;
}

export interface SubscribeOptions extends CallOptions {
  /** Go on after this `seq`; counts only where the agent's card promises replay. */
  readonly after?: number;
}

export interface WaitOptions extends CallOptions {
  /** Asked with the task after each change of its status. Default: it is over, or it wants its caller. */
  readonly until?: (task: Task) => boolean;
}

/** What a client is made of. */
export interface ClientParts {
  readonly card: AgentCard;
  readonly service: AgentService;
  readonly chosen: () => AgentInterface;
  readonly clock: Clock;
  readonly ids: Ids;
  readonly timeout: number | false;
  readonly extensions: readonly string[];
}

/**
 * Talks to one agent. Every method throws `A2AError`s, the same ones whatever the binding; compare their `code`.
 * Idempotent calls are repeated when the network fails them, sends only where the card says that they may (D8).
 */
export class Client {
  readonly card: AgentCard;
  /** The operations without their comforts, still resilient: for interceptors, proxies, and operations of extensions. */
  readonly service: AgentService;
  /** Makes the ids of messages. */
  readonly ids: Ids;
  readonly #parts: ClientParts;

  constructor(parts: ClientParts) {
    this.card = parts.card;
    this.service = parts.service;
    this.ids = parts.ids;
    this.#parts = parts;
  }

  /** The interface of the card that is in use; before the first answer, the one that is tried first. */
  get chosen(): AgentInterface {
    return this.#parts.chosen();
  }

  /**
   * A2A 1.0 §3.1.1. Waits until the task is over or wants its caller, unless `configuration.returnImmediately` says
   * otherwise. Runtimes bound such a wait (Node's fetch to 5 minutes): for longer tasks return immediately and use
   * `waitFor`, or stream.
   */
  sendMessage(input: SendInput, options?: CallOptions): Promise<SendMessageResponse> {
    return this.#call("SendMessage", toSendRequest(input, this.ids), options);
  }

  /**
   * A2A 1.0 §3.1.2.
   * @param observe - Sees each event just before the reader does.
   */
  sendStreamingMessage(
    input: SendInput,
    options?: CallOptions,
    observe?: (event: StreamResponse) => void,
  ): EventStream {
    return this.#stream("SendStreamingMessage", toSendRequest(input, this.ids), options, observe);
  }

  /** A2A 1.0 §3.1.3. */
  getTask(task: string | GetTaskRequest | GetTaskRequestDraft, options?: CallOptions): Promise<Task> {
    return this.#call("GetTask", byId(task), options);
  }

  /** One page (A2A 1.0 §3.1.4); `tasks()` gives all. */
  listTasks(request: ListTasksRequest = {}, options?: CallOptions): Promise<ListTasksResponse> {
    return this.#call("ListTasks", request, options);
  }

  /** Every task of the list, page after page as they are asked for. */
  async *tasks(request: ListTasksRequest = {}, options?: CallOptions): AsyncGenerator<Task, void, void> {
    for (let page: string | undefined = request.pageToken; ;) {
      const answer: ListTasksResponse = await this.listTasks(
        page === undefined ? request : { ...request, pageToken: page },
        options,
      );
      yield* answer.tasks;
      if (answer.nextPageToken === "") return;
      if (answer.nextPageToken === page)
        throw new A2AError("InvalidResponse", "A page of the list names itself as the next one");
      page = answer.nextPageToken;
    }
  }

  /** A2A 1.0 §3.1.5. */
  cancelTask(task: string | CancelTaskRequest, options?: CallOptions): Promise<Task> {
    return this.#call("CancelTask", byId(task), options);
  }

  /** A2A 1.0 §3.1.6: the task, then what happens to it. Of a finished task comes its final state alone, as one event. */
  subscribeToTask(task: string | SubscribeToTaskRequest, options: SubscribeOptions = {}): EventStream {
    return this.#stream("SubscribeToTask", byId(task), options);
  }

  /** A2A 1.0 §3.1.7. */
  createTaskPushNotificationConfig(
    request: TaskPushNotificationConfig,
    options?: CallOptions,
  ): Promise<TaskPushNotificationConfig> {
    return this.#call("CreateTaskPushNotificationConfig", request, options);
  }

  /** A2A 1.0 §3.1.8. */
  getTaskPushNotificationConfig(
    request: GetTaskPushNotificationConfigRequest,
    options?: CallOptions,
  ): Promise<TaskPushNotificationConfig> {
    return this.#call("GetTaskPushNotificationConfig", request, options);
  }

  /** A2A 1.0 §3.1.9. */
  listTaskPushNotificationConfigs(
    request: ListTaskPushNotificationConfigsRequest,
    options?: CallOptions,
  ): Promise<ListTaskPushNotificationConfigsResponse> {
    return this.#call("ListTaskPushNotificationConfigs", request, options);
  }

  /** A2A 1.0 §3.1.10. */
  async deleteTaskPushNotificationConfig(
    request: DeleteTaskPushNotificationConfigRequest,
    options?: CallOptions,
  ): Promise<void> {
    await this.#call("DeleteTaskPushNotificationConfig", request, options);
  }

  /** A2A 1.0 §3.1.11: the card for those who are authenticated. */
  getExtendedAgentCard(options?: CallOptions): Promise<AgentCard> {
    return this.#call("GetExtendedAgentCard", {}, options);
  }

  /**
   * The task, once it is over or wants its caller: by its stream where the agent streams, else by asking again and again.
   * Throws `UnsupportedOperation` when it is over and `until` still does not hold.
   */
  async waitFor(task: string | Pick<Task, "id">, options: WaitOptions = {}): Promise<Task> {
    const id = typeof task === "string" ? task : task.id;
    const until = options.until ?? (({ status }: Task) => stateKinds[status.state] !== "active");
    const { signal, release } = this.#bounded(options);
    try {
      return await waitForTask(this, this.#parts.clock, id, until, { ...options, timeout: false, signal });
    } finally {
      release();
    }
  }

  /** Messages that belong together, with their ids taken care of. */
  conversation(init?: ConversationInit): Conversation {
    return new Conversation(this, init);
  }

  async #call<Name extends UnaryName>(
    operation: Name,
    request: UnaryOperations[Name]["request"],
    options: CallOptions = {},
  ): Promise<UnaryOperations[Name]["response"]> {
    const { context, release } = this.#begin(operation, options);
    try {
      return (await this.service.call(operation, request, context)).value;
    } finally {
      release();
    }
  }

  #stream<Name extends StreamName>(
    operation: Name,
    request: StreamOperations[Name]["request"],
    options: SubscribeOptions = {},
    observe?: (event: StreamResponse) => void,
  ): EventStream {
    return new EventStream(async () => {
      const { context, release } = this.#begin(operation, options);
      try {
        const reply = await this.service.stream(operation, request, context);
        return { ...reply, batches: finishing(reply.batches, release) };
      } catch (thrown) {
        release();
        throw thrown;
      }
    }, observe);
  }

  /** Refuses what the card does not declare, as the agent would (A2A 1.0 §3.3.4). */
  #check(operation: OperationName): void {
    const push = operation.includes("PushNotification");
    const card = operation === "GetExtendedAgentCard" && "extendedAgentCard";
    const needed = push ? "pushNotifications" : operations[operation].stream ? "streaming" : card;
    if (needed === false || this.card.capabilities[needed] === true) return;
    throw new A2AError(
      push ? "PushNotificationNotSupported" : "UnsupportedOperation",
      `The card of ${JSON.stringify(this.card.name)} does not declare ${needed}`,
    );
  }

  /** What a call begins with; `release` once it is over. */
  #begin(operation: OperationName, options: SubscribeOptions): { readonly context: CallContext; release(): void } {
    this.#check(operation);
    const { extensions = [], trace, after } = options;
    const { signal, release } = this.#bounded(options);
    const context = {
      principal: anonymous,
      version: this.chosen.protocolVersion,
      extensions: [...new Set([...this.#parts.extensions, ...extensions])],
      outgoing: options,
      signal,
      trace,
      after,
    };
    return { context, release };
  }

  #bounded({ signal, timeout = this.#parts.timeout }: CallOptions): Bounded {
    return bounded(this.#parts.clock, signal, timeout, () => "The call");
  }
}

function byId<T extends { readonly id: string }>(task: string | T): T | { readonly id: string } {
  return typeof task === "string" ? { id: task } : task;
}
