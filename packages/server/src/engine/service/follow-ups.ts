import { taskFields } from "@parley/a2a/internal/protocol/index";
import {
  A2AError,
  hasGenerations,
  invalidParams,
  isInterrupted,
  isTerminal,
  type Message,
  type NewRecord,
  type SendMessageConfigurationDraft,
} from "@parley/a2a/internal/model/index";
import { inTaskFeature } from "../../intask/index.ts";
import type { AcceptedConfig } from "../../push/index.ts";
import {
  recordBytes,
  type AppendOutcome,
  type FeatureEffect,
  type StoredRun,
  type TaskAppend,
  type TaskHead,
  type TaskKey,
} from "../../store/index.ts";
import { sizeOf } from "../shared/bytes.ts";
import { isQueued, readResumed, waitingRun } from "../run/index.ts";
import { acquireLease, messageRecord, statusRecord, tooManyRows, type Origin } from "../log/index.ts";
import { taskIsFull, taskIsOver, taskNotFound } from "../shared/errors.ts";
import {
  configsOf,
  inContext,
  joined,
  webhookPath,
  type Accepted,
  type Retries,
  type Send,
  type SendDeps,
} from "./admission.ts";
import { defined } from "@parley/a2a/internal/base/defined";

interface FollowUp {
  readonly send: Send;
  readonly head: TaskHead;
  readonly message: Message;
  /** Whether the message may be stored only if the task has not changed (`ifGenerationMatch` of the 1.1 draft). */
  readonly unchanged: boolean;
  readonly crowded: boolean;
  /** Bytes of the memory budget that are reserved for the message. */
  readonly bytes: number;
  /** Whether a run has taken the message, and will release these bytes when it ends. */
  passedOn: boolean;
}

/** Accepts messages for existing tasks (A2A 1.0 §3.4.3). */
export class FollowUps {
  readonly #deps: SendDeps;
  readonly #retries: Retries;

  constructor(deps: SendDeps, retries: Retries) {
    this.#deps = deps;
    this.#retries = retries;
  }

  /** Retries if the task changes between the read and the append. */
  async take(first: Send, task: TaskKey): Promise<Accepted> {
    const { store } = this.#deps.settings;
    const { budget, queue, runs, standing } = this.#deps;
    const wanted = wantedGeneration(first);
    let webhook: AcceptedConfig | undefined;
    if (!standing.isRead) await standing.poll();
    for (let send = first; ; send = await renewed(send)) {
      const { message } = send.request;
      const head = await store.head(task, task.taskId);
      if (head === undefined) throw taskNotFound(task.taskId);
      checkContext(message, head);
      if (wanted !== undefined && wanted !== head.generation) throw generationMismatch(head, wanted);
      if (isTerminal(head.state)) throw taskIsOver(head);
      const mayRun = beginsTurn(head) && !queue.isCrowdedFor(task.agent);
      const bytes = sizeOf(message) + (mayRun ? head.bytes : 0);
      const whole = inContext(message, head.contextId);
      const kept = await this.#keptFor(send, head);
      webhook ??= await this.#webhookOf(send, task);
      if (!budget.tryTake(task.owner, bytes)) await budget.take(task.owner, bytes);
      // Check and reserve room in one step, because many waiting answers may arrive together.
      const reserved = mayRun && !queue.isCrowdedFor(task.agent) && runs.reserve(task.taskId);
      const next: FollowUp = {
        send: { ...send, kept },
        head,
        message: whole,
        unchanged: wanted !== undefined,
        crowded: !reserved,
        bytes,
        passedOn: false,
      };
      try {
        const accepted = await (webhook === undefined ? this.#store(next) : this.#storeWith(webhook, next));
        if (accepted !== undefined) return accepted;
      } finally {
        if (!next.passedOn) {
          budget.give(task.owner, bytes);
          if (reserved) runs.release(task.taskId);
          if (reserved) queue.freed();
        }
      }
    }
  }

  /**
   * The rows to store with the message. An answer to an authorization request has its own rows. For any other message, if the task waits for
   * an authorization, wakes the row of the waiting turn, so that the turn learns of the message.
   */
  async #keptFor({ kept, answer }: Send, { task, state }: TaskHead): Promise<readonly FeatureEffect[]> {
    if (answer !== undefined) return [...kept, ...(await answer.effects(task))];
    if (state !== "TASK_STATE_AUTH_REQUIRED") return kept;
    const due = Math.floor(this.#deps.settings.clock.now());
    return [...kept, { effect: "feature", op: "wake", feature: inTaskFeature, due }];
  }

  async #webhookOf({ request, call }: Send, task: TaskKey): Promise<AcceptedConfig | undefined> {
    const config = request.configuration?.taskPushNotificationConfig;
    if (config === undefined) return undefined;
    const configs = await configsOf(this.#deps);
    return configs.accept({
      config,
      task,
      version: call.version,
      extensions: call.extensions,
      path: `${webhookPath}.`,
    });
  }

  async #storeWith(webhook: AcceptedConfig, next: FollowUp): Promise<Accepted | undefined> {
    const { send, head } = next;
    const configs = await configsOf(this.#deps);
    return configs.store(webhook, head, webhookPath, async (rows) => {
      const withRows: FollowUp = { ...next, send: { ...send, kept: [...send.kept, ...rows] } };
      const accepted = await this.#store(withRows);
      next.passedOn = withRows.passedOn;
      return accepted;
    });
  }

  #store(next: FollowUp): Promise<Accepted | undefined> {
    return beginsTurn(next.head) ? this.#wake(next) : this.#queue(next);
  }

  /** Stores the message in the log for a later turn, because the task has a run, or its turn waits for room, a time or an event. */
  async #queue(followUp: FollowUp): Promise<Accepted | undefined> {
    const { send, head, message, unchanged } = followUp;
    const { committer, liveLogs, settings } = this.#deps;
    const { call, attempt, kept } = send;
    const answers = send.answer === undefined ? call : { ...call, answers: send.answer.id };
    const { turn } = head.run ?? waitingRun(head) ?? { turn: await this.#lastTurn(head) };
    const record = messageRecord(originOf(head, turn, send), message, answers, settings.clock.now());
    const item: TaskAppend = {
      task: head.task,
      // The fence makes this append fail if the run has ended, because nothing would then read the message.
      fence: head.fence,
      ...(unchanged && { expect: head.seq }),
      records: [record],
      maxBytes: settings.limits.taskBytes,
      effects: [...(attempt === undefined ? [] : [attempt.once]), ...kept],
    };
    const outcome = await committer.append(item, (stored) => {
      if (stored.ok) liveLogs.find(head.task.taskId)?.add(record, stored.seq);
    });
    if (!outcome.ok) return this.#refused(followUp, outcome, [record]);
    if (send.answer !== undefined) send.answer.stored(head.task);
    else settings.authorizations?.changed(head.task);
    return joined(head, outcome.seq);
  }

  /** Starts a turn for a message to a task without a run, and ends the task's interrupted state. */
  async #wake(followUp: FollowUp): Promise<Accepted | undefined> {
    const { runs } = this.#deps;
    const { owner } = followUp.head.task;
    runs.enter(owner);
    try {
      const joined = runs.beforeStart();
      if (joined !== undefined) await joined;
      return await (followUp.crowded ? this.#enter(followUp) : this.#begin(followUp));
    } finally {
      if (!followUp.passedOn) runs.leave(owner);
    }
  }

  async #enter(followUp: FollowUp): Promise<Accepted | undefined> {
    const { send, head, message } = followUp;
    const { committer, liveLogs, places, settings } = this.#deps;
    const { attempt, kept, principal: by } = send;
    const turn = (await this.#lastTurn(head)) + 1;
    const now = Math.max(settings.clock.now(), head.statusTime);
    const origin = originOf(head, turn, send);
    const records = [
      statusRecord(origin, { state: "TASK_STATE_SUBMITTED" }, "system", "", now),
      messageRecord(origin, message, send.call, now),
    ];
    const run = { turn, input: head.seq + records.length };
    const item: TaskAppend = { task: head.task, expect: head.seq, records, maxBytes: settings.limits.taskBytes };
    const outcome = await places.enter(head.task, run, (row) => {
      const effects = [...(attempt === undefined ? [] : [attempt.once]), ...kept, row];
      return committer.append({ ...item, effects }, undefined, { by });
    });
    if (!outcome.ok) return this.#refused(followUp, outcome, records);
    liveLogs.notifyRemote(head.task.taskId);
    return joined(head, outcome.seq);
  }

  async #begin(followUp: FollowUp): Promise<Accepted | undefined> {
    const { send, head } = followUp;
    const { committer, settings } = this.#deps;
    const { clock, lease, limits } = settings;
    const { attempt, kept } = send;
    const turn = (await this.#lastTurn(head)) + 1;
    const now = Math.max(clock.now(), head.statusTime);
    const records = recordsOf(followUp, turn, now);
    const run = { turn, attempt: 1, input: head.seq + records.length };
    const item: TaskAppend = {
      task: head.task,
      expect: head.seq,
      records,
      maxBytes: limits.taskBytes,
      effects: [
        acquireLease(lease, now),
        { effect: "run", run },
        ...(attempt === undefined ? [] : [attempt.once]),
        ...kept,
      ],
    };
    const outcome = await committer.append(item, undefined, { by: send.principal });
    if (!outcome.ok) return this.#refused(followUp, outcome, records);
    try {
      await this.#start(followUp, run, outcome);
    } catch (cause) {
      await this.#putBack(followUp, run, outcome.fence, cause);
    }
    return joined(head, outcome.seq);
  }

  /** Queues the turn of a message that is already stored, and thus accepted. It starts once a process has room. */
  async #putBack({ head, send }: FollowUp, run: StoredRun, fence: number, cause: unknown): Promise<void> {
    const { places, liveLogs, settings } = this.#deps;
    const { taskId } = head.task;
    const about = taskFields({ ...head.task, contextId: head.contextId, trace: send.call.trace });
    if (!this.#deps.runs.stopping)
      settings.logger.error("Failed to begin a turn; its task is queued", { ...about, cause });
    // If this fails, too, a later scan finds the abandoned task.
    await places.putBack(head, run, fence).catch(() => {});
    liveLogs.notifyRemote(taskId);
  }

  async #start(
    followUp: FollowUp,
    run: StoredRun,
    { seq, fence }: Extract<AppendOutcome, { readonly ok: true }>,
  ): Promise<void> {
    const { send, head, message, bytes } = followUp;
    const { settings, runs } = this.#deps;
    const { checkpoint } = head;
    // A task that waits for an answer has a checkpoint only if a delegation asked the question.
    const resumes = checkpoint === undefined ? undefined : await readResumed(settings.store, head.task, checkpoint);
    const snapshot =
      resumes?.turn === 1 ? undefined : await settings.store.load(head.task, head.task.taskId, { artifacts: true });
    runs.start({
      hosted: send.hosted,
      key: head.task,
      bytes,
      contextId: head.contextId,
      message,
      call: send.call,
      principal: send.principal,
      headers: send.headers,
      start: { seq, state: "TASK_STATE_WORKING", fence, run, mayHaveMessages: false },
      ...defined({ task: snapshot?.task, taskState: head.taskState }),
      ...(resumes !== undefined && checkpoint !== undefined && { resumes, checkpoint }),
    });
    followUp.passedOn = true;
  }

  /** The turn that the last record of a task belongs to. */
  async #lastTurn({ task, seq }: TaskHead): Promise<number> {
    const page = await this.#deps.settings.store.read(task, task.taskId, { after: seq - 1, limit: 1 });
    return page?.records[0]?.turn ?? 0;
  }

  /** Throws the error for the caller. `undefined`: the task has changed; retry. */
  async #refused(
    { send, head }: FollowUp,
    { reason, once, head: now = head }: Extract<AppendOutcome, { readonly ok: false }>,
    records: readonly NewRecord[],
  ): Promise<Accepted | undefined> {
    if (reason === "terminal") throw taskIsOver(head);
    if (reason === "full") {
      const { taskBytes } = this.#deps.settings.limits;
      const bytes = records.reduce((sum, record) => sum + recordBytes(record), now.bytes);
      if (bytes > taskBytes) throw taskIsFull(taskBytes);
      // The message itself fits, but the task has no room for another row.
      if (send.request.configuration?.taskPushNotificationConfig === undefined) {
        throw new A2AError("InternalError", undefined, { cause: tooManyRows() });
      }
      throw invalidParams([
        { field: webhookPath, description: "does not fit: the task has no room for another webhook" },
      ]);
    }
    if (reason === "missing") throw taskNotFound(head.task.taskId);
    if (reason !== "duplicate" || once === undefined) return undefined;
    return this.#retries.join(head.task, once, send.attempt);
  }
}

function beginsTurn(head: TaskHead): boolean {
  return head.run === undefined && waitingRun(head) === undefined && !isQueued(head);
}

/** The message, after the extensions that depend on rows of its task have accepted it again. */
async function renewed(send: Send): Promise<Send> {
  const depends = send.kept.some((effect) => effect.op !== "wake" && effect.if !== undefined);
  return depends && send.again !== undefined ? send.again() : send;
}

function recordsOf({ send, head, message }: FollowUp, turn: number, now: number): readonly NewRecord[] {
  const { call } = send;
  const origin = originOf(head, turn, send);
  const record = messageRecord(origin, message, call, now);
  if (!isInterrupted(head.state)) return [record];
  return [statusRecord(origin, { state: "TASK_STATE_WORKING" }, "system", "", now), record];
}

function originOf({ task, contextId }: TaskHead, turn: number, { call }: Send): Origin {
  return { taskId: task.taskId, contextId, turn, attempt: 1, extensions: call.extensions, trace: call.trace };
}

/** The generation that the task of a message must have (§3.2.2 of the 1.1 draft). */
export function wantedGeneration({ request, call }: Send): number | undefined {
  const configuration: SendMessageConfigurationDraft | undefined = request.configuration;
  return hasGenerations(call.version) ? configuration?.ifGenerationMatch : undefined;
}

function generationMismatch({ task: { taskId }, generation }: TaskHead, wanted: number): A2AError {
  return new A2AError("TaskGenerationMismatch", `The task is at generation ${generation}, not at ${wanted}`, {
    metadata: { taskId, expectedGeneration: String(wanted), currentGeneration: String(generation) },
  });
}

/** §3.4.3: a task keeps its context. */
function checkContext(message: Message, head: TaskHead): void {
  if (message.contextId === undefined || message.contextId === head.contextId) return;
  throw invalidParams([{ field: "message.contextId", description: "is not the context of this task" }]);
}
