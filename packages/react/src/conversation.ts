import type { CallOptions, Client, SendInput } from "@parley/a2a";
import {
  A2AError,
  data,
  hasCode,
  isTerminal,
  type Message,
  type SendMessageRequest,
  type Task,
} from "@parley/a2a/model";
import { randomIds } from "@parley/a2a/internal/base/index";
import { toSendRequest } from "@parley/a2a/internal/client/requests";
import { toA2AError } from "@parley/a2a/internal/model/index";
import { isAuthorizationAnswer } from "@parley/a2a/internal/protocol/authorization";
import { idempotentSendExtension } from "@parley/a2a/internal/protocol/service";
import type { FeedSource, TaskFeed } from "./feed.ts";
import {
  answerId,
  distinct,
  errorOf,
  messagesOf,
  partsOf,
  questionOf,
  statusOf,
  userMessages,
  type SentMessage,
} from "./messages.ts";
import { maxEntries, Memory, type Saved } from "./memory.ts";
import type {
  ApprovalRequest,
  ApprovalResponse,
  ConversationActions,
  ConversationInit,
  ConversationMessage,
  ConversationSnapshot,
  Question,
} from "./types.ts";

/** The agent of a conversation. */
export interface ConversationAgent extends FeedSource {
  /** Identifies the agent in storage. */
  readonly name: string;
  task(task: string | Task): TaskFeed;
}

/** A task of the conversation, or a message without one. */
interface Turn {
  feed: TaskFeed | undefined;
  /** Messages that this page sent. */
  sent: readonly SentMessage[];
  /** A direct reply. */
  reply?: Message;
  /** Unsubscribes from the task. */
  leave?: (() => void) | undefined;
  /** Its cached messages. Cleared after a change. */
  made?: readonly ConversationMessage[] | undefined;
}

function turnOf(feed: TaskFeed | undefined, message?: Message): Turn {
  return { feed, sent: message === undefined ? [] : [{ message, at: 0 }] };
}

/** A conversation as React reads it. */
export class ConversationStore implements ConversationActions {
  readonly #agent: ConversationAgent;
  readonly #init: ConversationInit;
  readonly #memory: Memory;
  readonly #listeners = new Set<() => void>();
  #turns: readonly Turn[];
  #contextId: string | undefined;
  /** The saved state of an earlier page; `undefined` until the storage is read. Its messages are removed when they are sent. */
  #saved: Saved | undefined;
  /** Messages in flight, and messages lost with the connection since the agent last accepted one. */
  #unsent: readonly Message[] = [];
  #lost: readonly Message[] = [];
  /** Ids of unsent messages that the agent may already have. Retries must have the same context and task. */
  readonly #tried = new Set<string>();
  /** By the content of the call that the user saw, because an agent may reuse an id for another call. */
  readonly #decisions = new Map<string, ApprovalResponse>();
  #error: Error | undefined;
  readonly #dismissed = new WeakSet<Error>();
  /** Resolves when the earlier conversation is read. */
  #restored: Promise<void> | undefined;
  #isRestoring = false;
  /** The last send, for which the next one waits. */
  #queue: Promise<void> = Promise.resolve();
  #snapshot: ConversationSnapshot;

  constructor(agent: ConversationAgent, id: string, init: ConversationInit) {
    this.#agent = agent;
    this.#init = init;
    this.#memory = new Memory(init.storage, `parley:${agent.name}:${id}`);
    this.#turns = (init.tasks ?? []).map((task) => turnOf(agent.task(task)));
    this.#contextId = init.contextId ?? init.tasks?.at(-1)?.contextId;
    this.#snapshot = this.#now();
  }

  readonly getSnapshot = (): ConversationSnapshot => this.#snapshot;

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    if (this.#listeners.size === 1) {
      for (const turn of this.#turns) this.#join(turn);
      this.#restore();
      this.#changed();
    }
    return () => {
      this.#listeners.delete(listener);
      if (this.#listeners.size > 0) return;
      for (const turn of this.#turns) {
        turn.leave?.();
        turn.leave = undefined;
      }
    };
  };

  /** Whether this object can be evicted: no component shows it, and a new object can read the same state from the agent. */
  get isIdle(): boolean {
    const { storage, contextId, taskId, tasks } = this.#init;
    const isBusy = this.#listeners.size > 0 || this.#unsent.length > 0;
    const isRead = tasks === undefined && (storage ?? contextId ?? taskId) !== undefined;
    return !isBusy && (isRead ? this.#turns.every(({ feed }) => feed !== undefined) : this.#turns.length === 0);
  }

  readonly sendMessage = async (input: SendInput, options?: CallOptions): Promise<void> => {
    const request = toSendRequest(input, randomIds);
    await this.#enqueue(request, options, false);
  };

  readonly addToolApprovalResponse = async (response: ApprovalResponse): Promise<void> => {
    const { question } = this.#snapshot;
    const decided = question?.approvals.find(({ id }) => id === response.id);
    // A message in flight is already the answer.
    if (question === undefined || decided === undefined || this.#unsent.length > 0) return;
    this.#decisions.set(callOf(decided), response);
    this.#changed();
    const answers = question.approvals.map((asked) => {
      const { id, digest } = asked;
      const decision = this.#decisions.get(callOf(asked));
      if (decision === undefined) return undefined;
      const { approved, reason } = decision;
      return data({ approvalId: id, approved, ...(reason !== undefined && { reason }), ...(digest && { digest }) });
    });
    const parts = answers.filter((part) => part !== undefined);
    if (parts.length < answers.length) return;
    await this.sendMessage({ parts, taskId: question.taskId });
  };

  readonly regenerate = async (): Promise<void> => {
    const { messages, status } = this.#snapshot;
    if (status === "submitted" || this.#unsent.length > 0) return;
    const accepted = this.#turns.findLastIndex(({ feed, reply }) => (feed ?? reply) !== undefined) + 1;
    const failed = this.#turns.slice(accepted).flatMap(({ sent }) => sent);
    if (failed.length > 0) {
      this.#turns = this.#turns.slice(0, accepted);
      await Promise.all(failed.map(({ message }) => this.#enqueue({ message }, undefined, false)));
      return;
    }
    const last = messages.findLast(({ role }) => role === "user");
    if (last === undefined) return;
    if (status === "streaming") await this.stop();
    // A new id: with the same id, the repeated message would join the task of the first one.
    await this.#enqueue(toSendRequest({ parts: last.parts }, randomIds), undefined, true);
  };

  readonly stop = async (): Promise<void> => {
    // Waits for a message in flight, whose task is the one to cancel.
    await this.#queue;
    await this.#turns
      .findLast(({ feed }) => feed !== undefined)
      ?.feed?.stop()
      .catch((thrown: unknown) => this.#fail(thrown));
  };

  readonly resumeStream = async (): Promise<void> => {
    const isUnread = this.#restored === undefined;
    this.clearError();
    for (const { feed } of this.#turns) feed?.retry();
    if (isUnread) this.#restore();
    await this.#restored;
  };

  readonly clearError = (): void => {
    if (this.#snapshot.error !== undefined) this.#dismissed.add(this.#snapshot.error);
    this.#error = undefined;
    this.#changed();
  };

  /** Shows a message, and sends it after earlier ones. */
  #enqueue(request: SendMessageRequest, options: CallOptions | undefined, isNew: boolean): Promise<void> {
    const { message } = request;
    const turn = turnOf(undefined, message);
    this.#turns = [...this.#turns, turn];
    this.#unsent = [...this.#unsent, message];
    this.#lost = this.#lost.filter(({ messageId }) => messageId !== message.messageId);
    this.clearError();
    this.#restore();
    this.#save();
    this.#queue = this.#queue.then(() => this.#send(turn, request, options, isNew));
    return this.#queue;
  }

  /** Never rejects. A failure becomes the conversation's error. */
  async #send(turn: Turn, request: SendMessageRequest, options: CallOptions = {}, isNew: boolean): Promise<void> {
    const { messageId } = request.message;
    try {
      await this.#restored;
      const client = await this.#agent.client();
      const feed = this.#turns.slice(0, this.#turns.indexOf(turn)).findLast((earlier) => earlier.feed)?.feed;
      const isTried = this.#tried.has(messageId);
      const open = isNew ? undefined : feed?.latest;
      const message = isTried ? request.message : this.#placed(request.message, open, feed?.latest);
      const target = this.#turns.find((other) => other.feed !== undefined && other.feed.id === message.taskId);
      const before = target?.feed?.latest;
      this.#unsent = this.#unsent.map((own) => (own.messageId === messageId ? message : own));
      this.#tried.add(messageId);
      this.#save();
      const configuration = { ...request.configuration, returnImmediately: true };
      const answer = await client.sendMessage({ ...request, message, configuration }, options);
      if (answer.task !== undefined) this.#accept(turn, answer.task, before);
      else turn.reply = answer.message;
      this.#contextId = (answer.task ?? answer.message)?.contextId ?? this.#contextId;
      this.#lost = [];
      this.#decisions.clear();
      this.#tried.delete(messageId);
    } catch (thrown) {
      // The agent may have accepted it; the next page finds out.
      if (isLost(thrown)) {
        const lost = this.#unsent.filter((own) => own.messageId === messageId);
        this.#lost = [...this.#lost, ...lost];
        turn.sent = lost.map((message) => ({ message, at: 0 }));
      } else this.#tried.delete(messageId);
      this.#fail(thrown);
    }
    this.#unsent = this.#unsent.filter((own) => own.messageId !== messageId);
    turn.made = undefined;
    this.#save();
    this.#changed();
  }

  /** Adds the context and the active or waiting task to a message. Ids set by the caller take precedence. */
  #placed(given: Message, open: Task | undefined, last: Task | undefined): Message {
    const contextId = this.#contextId ?? last?.contextId;
    const isOpen = open !== undefined && !isTerminal(open.status.state);
    return {
      ...(contextId !== undefined && { contextId }),
      ...(isOpen && { taskId: open.id }),
      ...(last !== undefined && !isOpen && { referenceTaskIds: [last.id] }),
      ...given,
    };
  }

  /** Shows the task that a message started, or adds the message to the task that it continues. */
  #accept(turn: Turn, task: Task, before: Task | undefined): void {
    const known = this.#turns.find(({ feed }) => feed?.id === task.id);
    if (known === undefined) {
      turn.feed = this.#agent.task(task);
      if (this.#listeners.size > 0) this.#join(turn);
      return;
    }
    known.sent = [...known.sent, ...turn.sent.map(({ message }) => ({ message, at: before?.history?.length ?? 0 }))];
    known.made = undefined;
    this.#turns = this.#turns.filter((other) => other !== turn);
    known.feed?.put(task, before);
  }

  #join(turn: Turn): void {
    turn.made = undefined;
    turn.leave ??= turn.feed?.subscribe(() => {
      turn.made = undefined;
      this.#changed();
    });
  }

  /** Reads the earlier conversation, once. */
  #restore(): void {
    const { storage, tasks, taskId } = this.#init;
    const isNothing = storage === undefined && (tasks !== undefined || (this.#contextId ?? taskId) === undefined);
    if (isNothing || this.#restored !== undefined) return;
    this.#isRestoring = true;
    this.#restored = this.#read()
      .catch((thrown: unknown) => {
        this.#restored = undefined;
        this.#fail(thrown);
      })
      .then(() => {
        this.#isRestoring = false;
        this.#changed();
      });
  }

  async #read(): Promise<void> {
    const saved = await this.#memory.read();
    this.#saved = saved;
    this.#contextId ??= saved.contextId;
    for (const id of saved.tried) this.#tried.add(id);
    if (this.#unsent.length > 0) this.#save();
    const earlier = this.#init.tasks === undefined ? await this.#earlier() : [];
    const known = new Set(this.#turns.map(({ feed }) => feed?.id));
    const tasks = [...new Map(earlier.map((task) => [task.id, task])).values()].filter(({ id }) => !known.has(id));
    const turns = tasks.map((task) => turnOf(this.#agent.task(task)));
    this.#turns = [...turns, ...this.#turns];
    if (this.#listeners.size > 0) for (const turn of turns) this.#join(turn);
    await this.#resend(saved);
  }

  /** The earlier tasks: those of the context, and unlisted ones with known ids. */
  async #earlier(): Promise<readonly Task[]> {
    const ids = this.#init.taskId === undefined ? (this.#saved?.taskIds ?? []) : [this.#init.taskId];
    if (this.#contextId === undefined && ids.length === 0) return [];
    const client = await this.#agent.client();
    const tasks = this.#contextId === undefined ? undefined : await listed(client, this.#contextId);
    // The agent may have deleted old tasks. Only a task named by the page must exist.
    const isDeleted = (thrown: unknown): boolean => this.#init.taskId === undefined && hasCode(thrown, "TaskNotFound");
    const read = async (id: string): Promise<readonly Task[]> =>
      client.getTask(id).then(
        (task) => [task],
        (thrown: unknown) => {
          if (isDeleted(thrown)) return [];
          throw thrown;
        },
      );
    const isOther = (id: string): boolean => tasks?.every((task) => task.id !== id) ?? true;
    // A retried message may have started another context. If the list is full, other tasks are older.
    const others = tasks !== undefined && tasks.length >= maxEntries ? [] : ids.filter(isOther);
    return [...(await Promise.all(others.map(read))).flat(), ...(tasks ?? [])];
  }

  /** Sends the messages that an earlier page could not send. Not to an agent without idempotent sends, which could run them twice. */
  async #resend(saved: Saved): Promise<void> {
    const inTasks = this.#turns.flatMap(({ feed }) => feed?.latest?.history ?? []);
    const inPage = this.#turns.flatMap(({ sent }) => sent.map(({ message }) => message));
    const known = new Set([...inTasks, ...inPage].map(({ messageId }) => messageId));
    const unsent = saved.unsent.filter(({ messageId }) => !known.has(messageId));
    const { extensions = [] } = unsent.length === 0 ? {} : (await this.#agent.client()).card.capabilities;
    const isIdempotent = extensions.some(({ uri }) => uri === idempotentSendExtension);
    this.#saved = { ...saved, unsent: [] };
    for (const message of unsent) {
      const turn = turnOf(undefined, message);
      this.#turns = [...this.#turns, turn];
      if (!isIdempotent) continue;
      this.#unsent = [...this.#unsent, message];
      this.#queue = this.#queue.then(() => this.#send(turn, { message }, {}, false));
    }
    if (isIdempotent || unsent.length === 0) return;
    this.#lost = [...unsent, ...this.#lost];
    this.#fail(new A2AError("ConnectionLost", "The page was closed before the agent accepted the last message"));
  }

  #save(): void {
    // Before the storage is read, a write would overwrite the saved state of an earlier page.
    if (this.#saved === undefined) return;
    const taskIds = [...new Set([...this.#saved.taskIds, ...this.#turns.flatMap(({ feed }) => feed?.id ?? [])])];
    const all = [...this.#saved.unsent, ...this.#lost, ...this.#unsent];
    // Credentials are never stored.
    const unsent = all.filter(({ parts }) => !parts.some(isAuthorizationAnswer));
    const tried = unsent.map(({ messageId }) => messageId).filter((id) => this.#tried.has(id));
    this.#memory.write({ contextId: this.#contextId, taskIds: taskIds.slice(-maxEntries), unsent, tried });
  }

  #fail(thrown: unknown): void {
    this.#error = toA2AError(thrown);
    this.#changed();
  }

  #changed(): void {
    this.#snapshot = this.#now();
    for (const listener of this.#listeners) listener();
  }

  #now(): ConversationSnapshot {
    const feeds = this.#turns.flatMap(({ feed }) => feed?.getSnapshot() ?? []);
    const last = feeds.at(-1);
    const failures = [this.#error, ...feeds.map((feed) => feed.error), errorOf(last?.task)];
    const error = failures.find((each) => each !== undefined && !this.#dismissed.has(each));
    const isWaiting = this.#unsent.length > 0 || this.#isRestoring;
    const question = last?.task && questionOf(last.task);
    return {
      contextId: this.#contextId ?? last?.task?.contextId,
      messages: distinct(this.#turns.flatMap((turn) => (turn.made ??= messagesIn(turn)))),
      question: question && this.#decided(question),
      status:
        error !== undefined ? "error" : isWaiting ? "submitted" : last === undefined ? "ready" : statusOf(last.task),
      error,
    };
  }

  #decided(question: Question): Question {
    const approvals = question.approvals.map((asked) => {
      const decision = this.#decisions.get(callOf(asked));
      return decision === undefined ? asked : { ...asked, approved: decision.approved };
    });
    return { ...question, approvals };
  }
}

/** The conversation that a server renders, and that the browser renders first. */
export function renderedFirst({ contextId, tasks = [] }: ConversationInit): ConversationSnapshot {
  const last = tasks.at(-1);
  const error = errorOf(last);
  return {
    contextId: contextId ?? last?.contextId,
    messages: distinct(tasks.flatMap((task) => messagesOf(task))),
    question: last && questionOf(last),
    status: error !== undefined ? "error" : last === undefined ? "ready" : statusOf(last),
    error,
  };
}

function messagesIn({ feed, sent, reply }: Turn): readonly ConversationMessage[] {
  const { task } = feed?.getSnapshot() ?? {};
  if (task !== undefined) return messagesOf(task, sent);
  const said = sent.flatMap(({ message }) => userMessages(message));
  if (reply === undefined) return said;
  const id = answerId(sent[0]?.message.messageId ?? reply.messageId);
  return [...said, { id, role: "assistant", parts: partsOf([reply]) }];
}

/** The newest tasks of a context, oldest first. `undefined` if the agent does not support listing. */
async function listed(client: Client, contextId: string): Promise<readonly Task[] | undefined> {
  const tasks: Task[] = [];
  try {
    for await (const task of client.tasks({ contextId, includeArtifacts: true, pageSize: 20 })) {
      tasks.unshift(task);
      if (tasks.length >= maxEntries) break;
    }
  } catch (thrown) {
    if (hasCode(thrown, "UnsupportedOperation") || hasCode(thrown, "MethodNotFound")) return undefined;
    throw thrown;
  }
  return tasks;
}

/** Includes errors of the runtime: an offline page cannot load its chunk with the client. */
const isLost = (thrown: unknown): boolean =>
  !(thrown instanceof A2AError) ||
  hasCode(thrown, "ConnectionFailed") ||
  hasCode(thrown, "ConnectionLost") ||
  hasCode(thrown, "Timeout");

/** Identifies a call by everything that the user saw of it. */
function callOf({ approved: _, ...call }: ApprovalRequest): string {
  return JSON.stringify(call);
}
