import { FieldsLogger } from "@parley/a2a/internal/base/fields-logger";
import { deferred, type Resolver } from "@parley/a2a/internal/base/index";
import type { LazyBlobs } from "../../blobs/lazy.ts";
import type { TakenAnswer } from "../../intask/index.ts";
import {
  A2AError,
  type Message,
  type Part,
  type SendMessageRequest,
  type TaskPushNotificationConfig,
} from "@parley/a2a/internal/model/index";
import {
  type AcceptedInput,
  isAuthorizationAnswer,
  taskFields,
  type CallContext,
} from "@parley/a2a/internal/protocol/index";
import type { FeatureEffect, OnceRecord, Owner } from "../../store/index.ts";
import { sizeOf } from "../shared/bytes.ts";
import { keepIn } from "../log/index.ts";
import { checkAddresses, hasLarge, type FirstResult } from "../run/index.ts";
import {
  answered,
  configsOf,
  inContext,
  storedCall,
  webhookPath,
  withInput,
  type Accepted,
  type Admission,
  type Send,
  type SendDeps,
} from "./admission.ts";
import { checkSize, declaredHeaders, type CheckedAgent } from "./checks.ts";
import { FollowUps } from "./follow-ups.ts";
import { Retries } from "./retries.ts";

/** Accepts messages, each once: as the first message of a task or as the next one. */
export class Sends {
  readonly #deps: SendDeps;
  readonly #retries: Retries;
  readonly #followUps: FollowUps;

  constructor(deps: SendDeps) {
    this.#deps = deps;
    this.#retries = new Retries(deps.settings);
    this.#followUps = new FollowUps(deps, this.#retries);
  }

  /** Forgets what is kept in memory of an owner. */
  forget(owner: Owner): void {
    this.#retries.forget(owner);
  }

  /**
   * Throws or rejects when the message is refused. `extensions`: the URIs of those that are active in this call. Returns
   * a promise only where something has to be waited for, because each promise is a notable part of the cost of a message.
   */
  accept(
    hosted: CheckedAgent,
    owner: Owner,
    request: SendMessageRequest,
    context: CallContext,
    extensions: readonly string[],
  ): Admission | Promise<Admission> {
    const answer = request.message.parts.find(isAuthorizationAnswer);
    if (answer === undefined) return this.#accept(hosted, owner, request, context, extensions);
    return this.#takeAnswer(request.message, answer).then((taken) =>
      this.#accept(hosted, owner, { ...request, message: taken.message }, context, extensions, taken),
    );
  }

  /** Takes a credential out of a message, before anything looks at it. */
  async #takeAnswer(message: Message, answer: Part): Promise<TakenAnswer> {
    const { authorizations } = this.#deps.settings;
    if (authorizations === undefined) throw new A2AError("InvalidParams", "This server asks for no authorizations");
    return authorizations.take(message, answer);
  }

  #accept(
    hosted: CheckedAgent,
    owner: Owner,
    request: SendMessageRequest,
    context: CallContext,
    extensions: readonly string[],
    answer?: TakenAnswer,
  ): Admission | Promise<Admission> {
    const { principal, incoming } = context;
    checkSize(request, this.#deps.settings.limits);
    if (this.#deps.settings.blobs !== undefined) checkAddresses(request.message, incoming);
    const headers = declaredHeaders(hosted, context);
    const call = storedCall(hosted, request, context, extensions, headers);
    const attempt = this.#retries.begin(owner, request.message, extensions, incoming);
    if (attempt?.admission !== undefined) return attempt.admission;
    const kept = noEffects;
    const send: Send = { hosted, owner, request, call, principal, headers, attempt, kept, answer, incoming };
    if (attempt === undefined) return this.#prepare(send);
    try {
      const { found } = attempt;
      const admission = found instanceof Promise ? this.#takeLater(send, found) : this.#takeUnless(send, found);
      attempt.admission = admission instanceof Promise ? this.#orEnd(send, admission) : admission;
      return attempt.admission;
    } catch (error) {
      this.#retries.end(attempt);
      throw error;
    }
  }

  /** Forgets the attempt where the message is refused. */
  async #orEnd({ attempt }: Send, admission: Promise<Admission>): Promise<Admission> {
    try {
      return await admission;
    } catch (error) {
      this.#retries.end(attempt);
      throw error;
    }
  }

  async #takeLater(send: Send, found: Promise<OnceRecord | undefined>): Promise<Admission> {
    return this.#takeUnless(send, await found);
  }

  /** `found`: what the store knows of the same message. */
  #takeUnless(send: Send, found: OnceRecord | undefined): Admission | Promise<Admission> {
    if (found === undefined) return this.#prepare(send);
    this.#retries.end(send.attempt);
    return this.#retries.join(send.owner, found, send.attempt).then(answered);
  }

  /** Lets the active extensions change a message that came for the first time. */
  #prepare(send: Send): Admission | Promise<Admission> {
    if (send.call.extensions.length === 0) return this.#admit(send);
    const accepted = this.#accepted(send);
    return accepted instanceof Promise ? accepted.then((later) => this.#admit(later)) : this.#admit(accepted);
  }

  #accepted(send: Send): Send | Promise<Send> {
    const { request, call, owner, principal, hosted } = send;
    const { extensions, store, clock, logger: own } = this.#deps.settings;
    const { message, metadata } = request;
    const { taskId, contextId } = message;
    const logger = new FieldsLogger(own, () =>
      taskFields({ agent: owner.agent, taskId, contextId, trace: call.trace }),
    );
    const input: AcceptedInput = metadata === undefined ? { message } : { message, metadata };
    const kept: FeatureEffect[] = [];
    const accepted = extensions.accept(
      input,
      { principal, extensions: call.extensions, card: hosted.card, clock, logger },
      {
        keep: keepIn(kept),
        read: async (feature) => (message.taskId === undefined ? [] : store.features(owner, message.taskId, feature)),
      },
    );
    if (accepted === input) return send;
    const taken = (later: AcceptedInput): Send => withInput(send, later, kept, () => this.#accepted(send));
    return accepted instanceof Promise ? accepted.then(taken) : taken(accepted);
  }

  #admit(send: Send): Admission | Promise<Admission> {
    const { blobs } = this.#deps.settings;
    if (blobs === undefined) return this.#admitStored(send);
    const has = send.incoming !== undefined || hasLarge(send.request.message, blobs.inlineBytes);
    return has ? this.#storeFiles(send, blobs) : this.#admitStored(send);
  }

  /** The message is in memory until its files are stored: until then it counts as it was sent. */
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
    return files.admit(stored, (whole) => this.#admitStored(whole));
  }

  #admitStored(send: Send): Admission | Promise<Admission> {
    const { message, configuration } = send.request;
    if (message.taskId !== undefined) return this.#follow(send, message.taskId);
    const webhook = configuration?.taskPushNotificationConfig;
    return webhook === undefined ? this.#begin(send) : this.#beginWith(webhook, send);
  }

  /** A message that makes a task with a webhook. It is not stored where the agent answers without a task. */
  async #beginWith(config: TaskPushNotificationConfig, send: Send): Promise<Admission> {
    const configs = await configsOf(this.#deps);
    const taskId = send.newTaskId ?? this.#deps.settings.ids.next();
    const task = { ...send.owner, taskId };
    const { version, extensions } = send.call;
    const accepted = await configs.accept({ config, task, version, extensions, path: `${webhookPath}.` });
    return this.#begin({ ...send, kept: [...send.kept, configs.first(accepted)] }, taskId);
  }

  #begin(send: Send, taskId: string | undefined = send.newTaskId): Admission | Promise<Admission> {
    const { budget, runs, queue } = this.#deps;
    const { owner } = send.owner;
    const bytes = sizeOf(send.request.message);
    runs.enter(owner);
    try {
      if (queue.isCrowded) {
        runs.leave(owner);
        return this.#queue(send, taskId);
      }
      const joined = runs.beforeStart();
      return joined === undefined && budget.tryTake(owner, bytes)
        ? this.#startRun(send, bytes, taskId)
        : this.#startRunLater(send, bytes, taskId, joined);
    } catch (error) {
      runs.leave(owner);
      throw error;
    }
  }

  async #follow(send: Send, taskId: string): Promise<Admission> {
    const { agent, owner } = send.owner;
    const accepted = await this.#followUps.take(send, { agent, owner, taskId });
    this.#retries.end(send.attempt);
    return answered(accepted);
  }

  async #queue(send: Send, taskId = send.newTaskId ?? this.#deps.settings.ids.next()): Promise<Admission> {
    const { queueMessage } = await import("./queueing.ts");
    const accepted = await queueMessage(this.#deps, this.#retries, send, taskId);
    this.#retries.end(send.attempt);
    return answered(accepted);
  }

  async #startRunLater(send: Send, bytes: number, taskId?: string, joined?: Promise<void>): Promise<Admission> {
    const { budget, runs, queue } = this.#deps;
    const { owner } = send.owner;
    try {
      if (joined !== undefined) await joined;
      await budget.take(owner, bytes);
      if (!queue.isCrowded) return this.#startRun(send, bytes, taskId);
    } catch (error) {
      runs.leave(owner);
      throw error;
    }
    // Others have taken the room meanwhile.
    budget.give(owner, bytes);
    runs.leave(owner);
    return this.#queue(send, taskId);
  }

  /**
   * Starts a run for a message without a task (A2A 1.0 §3.4.1). The agent answers it, or makes a task. `bytes`: what of
   * the budget is taken for the message. `taskId`: of the task that it may make.
   */
  #startRun(send: Send, bytes: number, taskId = this.#deps.settings.ids.next()): Admission {
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
        else if (first.kind === "duplicate") answer.resolve(this.#retries.join(owner, first.once, attempt));
        else answer.resolve({ kind: "task", task, contextId, input: 1, log: first.log, made: true });
      },
      reject: (error) => {
        clearTimer?.();
        this.#retries.end(attempt);
        // The caller may have left. Without a handler the rejection would end the process.
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
