import { Waiters } from "@parley/a2a/internal/base/index";
import { A2AError, isInterrupted, isTerminal, type NewRecord, type TaskState } from "@parley/a2a/internal/model/index";
import type {
  AppendOutcome,
  FeatureEffect,
  StoredRun,
  TaskAppend,
  TaskEffect,
  TaskHead,
  TaskKey,
} from "../../store/index.ts";
import type { EngineSettings } from "../shared/settings.ts";
import {
  Batch,
  acquireLease,
  boundOf,
  cutToFit,
  endOfRun,
  lossOf,
  withEnd,
  type Additions,
  type AppendResult,
  type Ending,
  type Kept,
  type TurnEnd,
} from "./append.ts";
import type { Cause, Committer, Submission } from "./committer.ts";
import type { LiveLog, LiveLogs } from "./live-log.ts";

/* Dependencies of the log writer. */

export interface WriterStart {
  readonly seq: number;
  readonly state: TaskState;
  readonly fence: number;
  readonly run: StoredRun;
  /** Whether the log may contain messages for later turns, such as after a run in another process. */
  readonly mayHaveMessages: boolean;
}

export interface WriterInit {
  readonly committer: Committer;
  readonly liveLogs: LiveLogs;
  readonly settings: Pick<EngineSettings, "clock" | "lease" | "limits">;
  readonly task: TaskKey;
  readonly contextId: string;
  /** The stored task. Absent: the first records create the task. */
  readonly start?: WriterStart;
  /** Source of the extensions' optional additions to the records. */
  readonly source?: { readonly additions: Additions | undefined };
  /** The rows of the files that no earlier record refers to. If the record is dropped, these rows are, too. */
  readonly files?: ((record: NewRecord) => readonly FeatureEffect[]) | undefined;
  readonly onResult: (result: AppendResult) => void;
}

const none: readonly never[] = [];

/**
 * Writes the log of one task under a fence. Records and effects gather in a batch, which the next commit stores. One batch
 * is in flight at a time, so that records stay in order. The size of both batches together is limited, so that a fast agent
 * waits for a slow store.
 *
 * Invariant for messages: a task without a run has no unread message. So a turn ends only if the writer knows all records in
 * the log (`expect`). The end of a turn raises the fence, and a message is accepted only under the fence that its sender saw.
 */
export class LogWriter implements Submission {
  /** Who sent the message of the turn, for the audit. */
  by: Cause["by"];
  readonly #init: WriterInit;
  readonly #live: LiveLog;
  #pending: Batch;
  #inFlight: Batch | undefined;
  #ending: Ending | undefined;
  /** The writer is in the committer's queue, or in a commit. */
  #submitted = false;
  // The values after the last commit.
  #seq: number;
  #fence: number;
  #storedRun: StoredRun | null;
  #isCreated: boolean;
  /** The log may hold messages that the run has not read. */
  #unreadMessages: boolean;
  /** A record did not fit into the task, which is about to fail. */
  #isFull = false;
  #closed = false;
  /** The writer was closed before everything was stored. */
  #isLost = false;
  readonly #waiters = new Waiters();

  constructor(init: WriterInit) {
    const { liveLogs, task, contextId, start } = init;
    this.#init = init;
    this.#isCreated = start !== undefined;
    this.#seq = start?.seq ?? 0;
    this.#fence = start?.fence ?? 0;
    this.#storedRun = start?.run ?? null;
    this.#unreadMessages = start?.mayHaveMessages ?? false;
    this.#pending = new Batch(start?.state ?? "TASK_STATE_SUBMITTED", this.#storedRun);
    this.#live = liveLogs.acquire(task, contextId);
    if (start !== undefined) this.#live.attach({ seq: start.seq, state: start.state, run: start.run });
  }

  get storedRun(): StoredRun | null {
    return this.#storedRun;
  }

  /** The fence of the last commit; `undefined` before the task is stored. */
  get fence(): number | undefined {
    return this.#isCreated ? this.#fence : undefined;
  }

  get closed(): boolean {
    return this.#closed;
  }

  /**
   * Adds records and effects to the batch. The records and effects of one call are stored together, unless the task becomes full.
   * `kept`: the rows that are dropped with each record. A terminal state also ends the run. Returns the state after all writes so far.
   */
  write(records: readonly NewRecord[], effects: readonly TaskEffect[], kept: Kept = none): TaskState {
    const pending = this.#pending;
    if (this.#closed) return pending.state;
    records.forEach((record, at) => {
      pending.addRecord(record);
      for (const effect of kept[at] ?? none) pending.addEffect(effect);
      for (const effect of this.#init.files?.(record) ?? none) pending.addEffect(effect);
    });
    for (const effect of effects) pending.addEffect(effect);
    if (isTerminal(pending.state)) {
      pending.run = null;
      pending.effects.push(...endOfRun);
    }
    this.#submit();
    return pending.state;
  }

  /** Ends the turn. `finish`: the last record of the turn; absent if the task is interrupted or waits. */
  endTurn(finish: Ending["finish"], how: Ending["how"], states: Ending["states"]): Promise<TurnEnd> {
    if (this.#closed) return Promise.resolve("ended");
    return new Promise((resolve) => {
      this.#ending = { finish, how, states, resolve };
      this.#submit();
    });
  }

  /** Notes that the log was read up to `seq` while no append was in flight. `unreadMessages`: whether it has further messages. */
  sawLog(seq: number, unreadMessages: boolean): void {
    this.#seq = seq;
    this.#unreadMessages = unreadMessages;
  }

  /** Resolves once the batches are below their limits. Returns `undefined` if they already are. */
  room(): Promise<void> | undefined {
    return this.#isWindowFull ? this.#untilRoom() : undefined;
  }

  /** Resolves once everything written so far is stored. Rejects if it cannot be stored. */
  async flush(): Promise<void> {
    while (this.#hasPending || (this.#inFlight !== undefined && !this.#closed)) await this.settled();
    if (this.#isLost) throw new A2AError("Unavailable", "The last events could not be stored");
  }

  /** Resolves after the append in flight, if there is one, else after the next append. Also resolves once the writer is closed. */
  settled(): Promise<void> {
    return this.#waiters.wait();
  }

  get cause(): Cause {
    return { by: this.by, from: this.#inFlight?.from };
  }

  /** Called by the committer. Returns the item that stores the batch. */
  take(): TaskAppend {
    const { task, contextId, settings } = this.#init;
    // The writer was closed while queued, so return an item that changes nothing.
    if (this.#closed) return { task, records: [] };
    const ending = this.#endingNow();
    const batch = this.#pending;
    this.#pending = new Batch(batch.state, batch.run);
    this.#inFlight = batch;
    const effects = withEnd(batch.effects, ending);
    if (ending !== undefined) {
      if (ending.finish !== undefined) batch.addRecord(ending.finish);
      batch.run = null;
    }
    const { records } = batch;
    const bound = boundOf(batch, this.#taskBytes);
    if (!this.#isCreated) {
      const lease = acquireLease(settings.lease, settings.clock.now());
      return { task, create: { contextId }, records, ...bound, effects: [lease, ...effects] };
    }
    const expect = ending === undefined || ending.how === "waits" ? {} : { expect: this.#seq };
    return { task, fence: this.#fence, ...expect, records, ...bound, effects };
  }

  /** Called by the committer with the outcome of the last item that it took. */
  settle(outcome: AppendOutcome): void {
    this.#submitted = false;
    const batch = this.#inFlight;
    this.#inFlight = undefined;
    if (batch === undefined || this.#closed) return;
    const result = this.#resultOf(batch, outcome);
    this.#waiters.wake();
    this.#init.onResult(result);
    if (this.#hasPending) this.#submit();
  }

  storeFailed(error: unknown): void {
    if (!this.#closed) this.#init.onResult({ kind: "failed", error });
  }

  /** Ends all writing. `lost`: unstored data is dropped. `error`: the store failed. */
  close(lost: boolean, error?: A2AError): void {
    this.#closed = true;
    this.#isLost = lost;
    this.#endingIs("ended");
    if (error !== undefined) this.#live.fail(error);
    // A terminal task no longer changes, so its readers may keep reading from memory.
    if (this.#live.head === undefined || !isTerminal(this.#live.head.state)) this.#live.detach();
    this.#init.liveLogs.release(this.#live);
    this.#waiters.wake();
  }

  /** `Infinity` after `#cut`, because the remaining records fit. */
  get #taskBytes(): number {
    return this.#isFull ? Infinity : this.#init.settings.limits.taskBytes;
  }

  get #hasPending(): boolean {
    return !this.#closed && (!this.#pending.isEmpty || this.#ending !== undefined);
  }

  #submit(): void {
    if (this.#submitted) return;
    this.#submitted = true;
    this.#init.committer.submit(this);
  }

  #resultOf(batch: Batch, outcome: AppendOutcome): AppendResult {
    if (outcome.ok) return this.#stored(batch, outcome.seq, outcome.fence);
    if (outcome.reason === "stale" && this.#ending !== undefined) return this.#putBack(batch, this.#ending);
    if (outcome.reason === "full") return this.#leaveOut(batch) ?? this.#cut(batch, outcome.head);
    const once = outcome.reason === "duplicate" ? outcome.once : undefined;
    return { kind: "refused", loss: lossOf(outcome), once };
  }

  #stored({ records, sizes, state, run }: Batch, seq: number, fence: number): AppendResult {
    const isNew = !this.#isCreated;
    this.#init.source?.additions?.forget(records);
    if (!isNew && seq - records.length !== this.#seq) this.#unreadMessages = true;
    this.#seq = seq;
    this.#fence = fence;
    this.#isCreated = true;
    this.#storedRun = run;
    const head = { seq, state, run: run ?? undefined };
    if (isNew) this.#live.attach({ seq: 0, state, run: head.run });
    this.#live.push(records, sizes, head);
    if (run === null) this.#pending.state = state;
    const ended = run === null;
    if (!isNew) return { kind: ended ? "ended" : "open" };
    // A turn that released its process to wait has ended here, but its message has no answer yet.
    const isAnswered = ended && (isTerminal(state) || isInterrupted(state));
    return { kind: "created", ended, log: isAnswered ? records : undefined };
  }

  /** The log has messages that the run has not read, so puts the batch back, and does not end the turn. */
  #putBack(batch: Batch, { finish }: Ending): AppendResult {
    this.#unreadMessages = true;
    this.#pending.prepend(batch, batch.records.length - (finish === undefined ? 0 : 1));
    this.#endingIs("messageWaits");
    return { kind: "open" };
  }

  /** The task is full, so appends the batch again without its optional additions. `undefined`: the batch has no additions. */
  #leaveOut(batch: Batch): AppendResult | undefined {
    const left = this.#init.source?.additions?.withoutAny(batch);
    if (left === undefined) return undefined;
    const end = this.#ending;
    const hasEnd = end?.finish !== undefined && batch.records.at(-1) === end.finish;
    this.#pending.prepend(left, left.records.length - Number(hasEnd));
    if (hasEnd) this.#ending = { ...end, finish: left.records.at(-1) };
    return { kind: "open" };
  }

  /**
   * The task is full, so appends the records that still fit, and drops the others. If the rows of these records do not fit either,
   * drops one more record, but keeps the status that ends the task.
   */
  #cut(batch: Batch, head: TaskHead | undefined): AppendResult {
    const before = head ?? { bytes: 0, state: this.#pending.state };
    const { kept, lost, rows } = cutToFit(batch, this.#taskBytes, before);
    kept.run = this.#pending.run;
    this.#pending = kept;
    const end = batch.records.at(-1);
    if (this.#isFull && rows && lost !== end && end?.actor === "system" && isTerminal(batch.state)) {
      this.write([end], none);
      return { kind: "open" };
    }
    this.#isFull = true;
    this.#endingIs("ended");
    return { kind: "full", lost, rows, state: kept.state };
  }

  /** The end of the turn for the next append. `undefined`: the turn does not end now, for example because a message waits. */
  #endingNow(): Ending | undefined {
    // A waiting turn has not ended, so messages keep waiting for its end.
    if (this.#unreadMessages && this.#ending?.how !== "waits") this.#endingIs("messageWaits");
    return this.#ending;
  }

  #endingIs(end: TurnEnd): void {
    const ending = this.#ending;
    this.#ending = undefined;
    ending?.resolve(end);
  }

  get #isWindowFull(): boolean {
    const { pendingEvents, pendingBytes } = this.#init.settings.limits;
    const events = this.#pending.records.length + (this.#inFlight?.records.length ?? 0);
    return events >= pendingEvents || this.#pending.bytes + (this.#inFlight?.bytes ?? 0) >= pendingBytes;
  }

  async #untilRoom(): Promise<void> {
    while (this.#isWindowFull && !this.#closed) await this.settled();
  }
}
