import {
  isTerminal,
  type Message,
  type SendMessageRequest,
  type SendMessageResponse,
  type StreamResponse,
} from "../model/index.ts";
import type { CallOptions, Client } from "./client.ts";
import { type SendInput, toSendRequest } from "./content.ts";
import type { EventStream } from "./stream.ts";

export interface ConversationInit {
  /** Goes on with a conversation of earlier. */
  readonly contextId?: string;
  /** Goes on with a task of it that is not over. */
  readonly taskId?: string;
}

/**
 * Keeps what makes single messages a conversation (A2A 1.0 §3.4.3): each message carries the context that the agent
 * gave it; while a task is open, because it asked for input or still works, messages belong to it; once it is over, the
 * next message starts a new one that names the finished one in `referenceTaskIds`. What a message says itself wins.
 *
 * Wait for the first answer, or the first event, before sending again: until then there is no context to share.
 */
export class Conversation {
  readonly #client: Client;
  #contextId: string | undefined;
  #taskId: string | undefined;
  #finishedTaskId: string | undefined;

  constructor(client: Client, init: ConversationInit = {}) {
    this.#client = client;
    this.#contextId = init.contextId;
    this.#taskId = init.taskId;
  }

  get contextId(): string | undefined {
    return this.#contextId;
  }

  /** The task that the next message belongs to. */
  get taskId(): string | undefined {
    return this.#taskId;
  }

  /** Sends a message and waits for the agent: its task at a stop, or its plain answer. */
  async send(input: SendInput, options?: CallOptions): Promise<SendMessageResponse> {
    const response = await this.#client.sendMessage(this.#place(input), options);
    this.#note(response);
    return response;
  }

  /** Sends a message and gives the events of its task as they come. */
  stream(input: SendInput, options?: CallOptions): EventStream {
    return this.#client.sendStreamingMessage(this.#place(input), options, (event) => this.#note(event));
  }

  #place(input: SendInput): SendMessageRequest {
    const request = toSendRequest(input, this.#client.ids);
    const contextId = this.#contextId;
    const given = request.message;
    const taskId =
      given.taskId ?? (given.contextId === undefined || given.contextId === contextId ? this.#taskId : undefined);
    const finished = taskId === undefined ? this.#finishedTaskId : undefined;
    const message: Message = {
      ...(contextId !== undefined && { contextId }),
      ...(taskId !== undefined && { taskId }),
      ...(finished !== undefined && { referenceTaskIds: [finished] }),
      ...given,
    };
    return { ...request, message };
  }

  #note({ task, message, statusUpdate }: Partial<StreamResponse>): void {
    const told = task ?? statusUpdate;
    this.#contextId = (told ?? message)?.contextId ?? this.#contextId;
    if (told !== undefined) {
      const taskId = task?.id ?? statusUpdate?.taskId;
      const over = isTerminal(told.status.state);
      this.#taskId = over ? undefined : taskId;
      if (over) this.#finishedTaskId = taskId;
    }
    // A plain answer ends the exchange, unless it says that it belongs to the task that is open.
    if (message !== undefined && message.taskId !== this.#taskId) this.#taskId = undefined;
  }
}
