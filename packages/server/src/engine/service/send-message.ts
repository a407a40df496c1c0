import { FieldsLogger, deferred, type Resolver } from "@parley/a2a/internal/base/index";
import {
  A2AError,
  type Message,
  type Part,
  type SendMessageRequest,
  type TaskPushNotificationConfig,
} from "@parley/a2a/internal/model/index";
import {
  isAuthorizationAnswer,
  taskFields,
  type AcceptedInput,
  type CallContext,
} from "@parley/a2a/internal/protocol/index";
import type { LazyBlobs } from "../../blobs/lazy.ts";
import type { TakenAnswer } from "../../intask/index.ts";
import { recordBytes, type AppendOutcome, type FeatureEffect, type OnceRecord, type Owner } from "../../store/index.ts";
import { keepIn, tooManyRows } from "../log/index.ts";
import { checkAddresses, hasLarge, queuedTask, type FirstResult } from "../run/index.ts";
import { taskIsFull } from "../shared/errors.ts";
import { sizeOf } from "../shared/bytes.ts";
import {
  Retries,
  answered,
  configsOf,
  inContext,
  storedCall,
  webhookPath,
  type Accepted,
  type Admission,
  type Send,
  type SendDeps,
} from "./admission.ts";
import { checkSize, declaredHeaders, type CheckedAgent } from "./checks.ts";
import { FollowUps } from "./follow-ups.ts";

/** Accepts messages, each only once, as the first message of a new task or as the next message of a task. */
export class Sends {
  readonly #deps: SendDeps;
  readonly #retries: Retries;
  readonly #followUps: FollowUps;

  constructor(deps: SendDeps) {
    this.#deps = deps;
    this.#retries = new Retries(deps.settings);
    this.#followUps = new FollowUps(deps, this.#retries);
  }

  forget(owner: Owner): void {
    this.#retries.forget(owner);
  }

  /**
   * Throws or rejects if the message is invalid. `extensions`: the URIs that are active in this call. Returns a promise only if it must
   * wait, because each promise costs a hundredth of the CPU of a message (`test/budgets`).
   */
  accept(
    hosted: CheckedAgent,
    owner: Owner,
    request: SendMessageRequest,
    context: CallContext,
    extensions: readonly string[],
  ): Admission | Promise<Admission> {
    const answer = request.message.parts.find(isAuthorizationAnswer);
    if (answer === undefined) return this.#joinOrAdmit(hosted, owner, request, context, extensions);
    return this.#takeAnswer(request.message, answer).then((taken) =>
      this.#joinOrAdmit(hosted, owner, { ...request, message: taken.message }, context, extensions, taken),
    );
  }

  /** Removes a credential from a message before any other code reads it. */
  async #takeAnswer(message: Message, answer: Part): Promise<TakenAnswer> {
    const { authorizations } = this.#deps.settings;
    if (authorizations === undefined)
      throw new A2AError("InvalidParams", "This server does not request authorizations");
    return authorizations.take(message, answer);
  }

  /** A retry joins the answer of the first attempt, if this process knows it. */
  #joinOrAdmit(
    hosted: CheckedAgent,
    owner: Owner,
    request: SendMessageRequest,
    context: CallContext,
    extensions: readonly string[],
    answer?: TakenAnswer,
  ): Admission | Promise<Admission> {
    const { principal, incoming } = context;
    const { settings } = this.#deps;
    checkSize(request, settings.limits);
    if (settings.blobs !== undefined) checkAddresses(request.message, incoming);
    const headers = declaredHeaders(hosted, context);
    const call = storedCall(hosted, request, context, extensions, headers);
    const attempt = this.#retries.begin(owner, request.message, extensions, incoming);
    if (attempt?.admission !== undefined) return attempt.admission;
    const kept = noEffects;
    const send: Send = { hosted, owner, request, call, principal, headers, attempt, kept, answer, incoming };
    const admission = this.#startAtOnce(send) ?? this.#admit(send);
    if (attempt !== undefined) attempt.admission = admission;
    return admission;
  }

  /** Starts a run for a message synchronously. `undefined`: this message must wait. */
  #startAtOnce(send: Send): Admission | undefined {
    const { budget, runs, queue, settings, standing } = this.#deps;
    const { request, call, attempt, incoming } = send;
    const { message, configuration } = request;
    if (attempt?.found !== undefined || call.extensions.length > 0) return undefined;
    if (message.taskId !== undefined || configuration?.taskPushNotificationConfig !== undefined) return undefined;
    if (incoming !== undefined || this.#hasLarge(message)) return undefined;
    const { owner } = send.owner;
    const bytes = sizeOf(message);
    if (!standing.isRead || queue.isCrowdedFor(send.owner.agent) || runs.beforeStart() !== undefined) return undefined;
    let hasEntered = false;
    try {
      runs.enter(owner);
      hasEntered = true;
      if (budget.tryTake(owner, bytes)) return this.#startRun(send, bytes, settings.ids.next());
    } catch (error) {
      if (hasEntered) runs.leave(owner);
      this.#retries.end(attempt);
      throw error;
    }
    runs.leave(owner);
    return undefined;
  }

  async #admit(send: Send): Promise<Admission> {
    const { attempt, owner } = send;
    try {
      // Await only if necessary, because the message's task may end during the wait.
      const found = attempt?.found && (await attempt.found);
      if (found === undefined) return await this.#admitNew(send);
      this.#retries.end(attempt);
      return answered(await this.#retries.join(owner, found, attempt));
    } catch (error) {
      this.#retries.end(attempt);
      throw error;
    }
  }

  async #admitNew(given: Send): Promise<Admission> {
    const { blobs } = this.#deps.settings;
    const send = given.call.extensions.length === 0 ? given : await this.#extended(given);
    if (blobs === undefined || (send.incoming === undefined && !this.#hasLarge(send.request.message))) {
      return this.#followOrBegin(send);
    }
    return this.#storeFiles(send, blobs);
  }

  #hasLarge(message: Message): boolean {
    const { blobs } = this.#deps.settings;
    return blobs !== undefined && hasLarge(message, blobs.inlineBytes);
  }

  async #extended(send: Send): Promise<Send> {
    const { request, call, owner, principal, hosted } = send;
    const { extensions, store, clock, logger: own } = this.#deps.settings;
    const { message, metadata } = request;
    const { taskId, contextId } = message;
    const logger = new FieldsLogger(own, () =>
      taskFields({ agent: owner.agent, taskId, contextId, trace: call.trace }),
    );
    const input: AcceptedInput = metadata === undefined ? { message } : { message, metadata };
    const kept: FeatureEffect[] = [];
    const accepted = await extensions.accept(
      input,
      { principal, extensions: call.extensions, card: hosted.card, clock, logger },
      {
        keep: keepIn(kept),
        read: async (feature) => (taskId === undefined ? [] : store.features(owner, taskId, feature)),
      },
    );
    if (accepted === input) return send;
    return {
      ...send,
      request: { ...request, message: accepted.message },
      call: { ...call, metadata: accepted.metadata },
      kept,
      again: () => this.#extended(send),
    };
  }

  /** Stores the files of a message. Until then the message is in memory, and counts with its original size. */
  async #storeFiles(send: Send, blobs: LazyBlobs): Promise<Admission> {
    const { budget, runs, settings } = this.#deps;
    const { owner } = send.owner;
    const { message } = send.request;
    const bytes = sizeOf(message);
    const makesTask = message.taskId === undefined;
    const { MessageFiles } = await import("./message-files.ts");
    const files = new MessageFiles(blobs, settings);
    if (makesTask) runs.enter(owner);
    let stored: Send;
    try {
      await budget.take(owner, bytes);
      try {
        stored = await files.store(send);
      } catch (error) {
        files.drop();
        throw error;
      } finally {
        budget.give(owner, bytes);
      }
    } finally {
      if (makesTask) runs.leave(owner);
    }
    return files.admit(stored, (whole) => this.#followOrBegin(whole));
  }

  async #followOrBegin(send: Send): Promise<Admission> {
    const { message, configuration } = send.request;
    if (message.taskId === undefined) return this.#begin(send, configuration?.taskPushNotificationConfig);
    const { agent, owner } = send.owner;
    const accepted = await this.#followUps.take(send, { agent, owner, taskId: message.taskId });
    this.#retries.end(send.attempt);
    return answered(accepted);
  }

  /** `webhook`: the webhook of the task that the message creates. Not stored if the agent answers without a task. */
  async #begin(send: Send, webhook: TaskPushNotificationConfig | undefined): Promise<Admission> {
    const taskId = send.newTaskId ?? this.#deps.settings.ids.next();
    if (webhook === undefined) return this.#startOrQueue(send, taskId);
    const configs = await configsOf(this.#deps);
    const task = { ...send.owner, taskId };
    const { version, extensions } = send.call;
    const accepted = await configs.accept({ config: webhook, task, version, extensions, path: `${webhookPath}.` });
    return this.#startOrQueue({ ...send, kept: [...send.kept, configs.first(accepted)] }, taskId);
  }

  async #startOrQueue(send: Send, taskId: string): Promise<Admission> {
    const { budget, runs, queue, standing } = this.#deps;
    const { agent, owner } = send.owner;
    const bytes = sizeOf(send.request.message);
    if (!standing.isRead) await standing.poll();
    runs.enter(owner);
    try {
      if (!queue.isCrowdedFor(agent)) {
        const joined = runs.beforeStart();
        if (joined !== undefined) await joined;
        await budget.take(owner, bytes);
        // Other messages may have taken the room since the check.
        if (!queue.isCrowdedFor(agent)) return this.#startRun(send, bytes, taskId);
        budget.give(owner, bytes);
      }
    } catch (error) {
      runs.leave(owner);
      throw error;
    }
    runs.leave(owner);
    const accepted = await this.#queueMessage(send, taskId);
    this.#retries.end(send.attempt);
    return answered(accepted);
  }

  /** Creates a task whose agent is called once a process has room. The agent can then no longer reply directly: its reply completes the task. */
  async #queueMessage(send: Send, taskId: string): Promise<Accepted> {
    const { settings, committer, places } = this.#deps;
    const { owner, call, attempt, kept, principal } = send;
    const { message } = send.request;
    const { taskBytes, queuedPerCaller } = settings.limits;
    const contextId = message.contextId ?? settings.ids.next();
    const task = { agent: owner.agent, owner: owner.owner, taskId };
    const record = queuedTask(task, contextId, inContext(message, contextId), call, settings.clock.now());
    const store = (row: FeatureEffect): Promise<AppendOutcome> => {
      const effects = [...(attempt === undefined ? [] : [attempt.once]), ...kept, row];
      const item = { task, create: { contextId }, records: [record], maxBytes: taskBytes, effects };
      return committer.append(item, undefined, { by: principal });
    };
    const outcome = await places.enter(task, { turn: 1, input: 1 }, store, queuedPerCaller);
    if (outcome.ok) return { kind: "task", task, contextId, input: 1, log: undefined, made: true };
    if (outcome.reason === "duplicate" && outcome.once !== undefined) return this.#join(send, outcome.once);
    if (outcome.reason !== "full") throw new A2AError("Unavailable", "The message could not be stored");
    throw recordBytes(record) > taskBytes ? taskIsFull(taskBytes) : tooManyRows();
  }

  #join({ owner, attempt }: Send, once: OnceRecord): Promise<Accepted> {
    return this.#retries.join(owner, once, attempt);
  }

  /**
   * Starts a run for a message without a task (A2A 1.0 §3.4.1). The agent answers it, or creates the task `taskId`. `bytes`: the part of the
   * budget that is reserved for the message.
   */
  #startRun(send: Send, bytes: number, taskId: string): Admission {
    const { hosted, owner, call, principal, headers, attempt, kept } = send;
    const { message, configuration } = send.request;
    const { settings, runs } = this.#deps;
    const { ids, clock, directReplyWithin } = settings;
    const contextId = message.contextId ?? ids.next();
    const task = { agent: owner.agent, owner: owner.owner, taskId };
    const answer = deferred<Accepted>();
    let clearTimer: (() => void) | undefined;
    const result: Resolver<FirstResult> = {
      resolve: (first) => {
        clearTimer?.();
        this.#retries.end(attempt, first.kind === "message" ? first.reply.text : undefined);
        if (first.kind === "message") answer.resolve(first);
        else if (first.kind === "duplicate") answer.resolve(this.#join(send, first.once));
        else answer.resolve({ kind: "task", task, contextId, input: 1, log: first.log, made: true });
      },
      reject: (error) => {
        clearTimer?.();
        this.#retries.end(attempt);
        // The caller may have disconnected. Without a handler the rejection would end the process.
        answer.promise.catch(() => {});
        answer.reject(error);
      },
    };
    const run = runs.start({
      hosted,
      key: task,
      bytes,
      contextId,
      isNewContext: message.contextId === undefined,
      message: message.contextId === undefined ? inContext(message, contextId) : message,
      call,
      principal,
      headers,
      result,
      once: attempt?.once,
      kept,
    });
    if (configuration?.returnImmediately === true && hosted.agent.mayReplyDirectly !== false) {
      clearTimer = clock.after(directReplyWithin, () => run.phase.makeTask());
    }
    return { answer: answer.promise };
  }
}

const noEffects: readonly FeatureEffect[] = [];
