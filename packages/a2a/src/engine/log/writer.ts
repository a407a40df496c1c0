import { A2AError, isTerminal, type NewRecord, type TaskState } from "../../model/index.ts";
import type {
  AppendOutcome,
  OnceRecord,
  StoredRun,
  TaskAppend,
  TaskEffect,
  TaskHead,
  TaskKey,
} from "../../store/index.ts";
import type { EngineSettings } from "../options.ts";
import { Batch, cutToFit, lossOf, type Loss } from "./append.ts";
import type { LiveLog, LiveLogs } from "./live-log.ts";

/** Where a task stands whose log is to be continued. */
export interface WriterStart {
  readonly seq: number;
  readonly state: TaskState;
  readonly fence: number;
  readonly run: StoredRun;
  /** Whether messages may wait in the log for the turns after this one, as for a run that another process had. */
  readonly mayHaveMessages: boolean;
}

export interface WriterInit {
  readonly liveLogs: LiveLogs;
  readonly settings: Pick<EngineSettings, "clock" | "lease" | "limits">;
  readonly task: TaskKey;
  readonly contextId: string;
  /** Absent: the first records make the task. */
  readonly start?: WriterStart;
}

/** What came of an append. */
export type AppendResult =
  /** It is stored, or, where a message came before the end of the turn, put back; the task goes on. */
  | { readonly kind: "open" }
  /** The task stands. `log`: its turn has ended with it, and these are all its records. */
  | { readonly kind: "created"; readonly log: readonly NewRecord[] | undefined }
  /** The turn has ended: the task is over, or waits for its user. */
  | { readonly kind: "ended" }
  /** `lost` did not fit into the task. What came before it goes down with the next append; a terminal status then fits. */
  | { readonly kind: "full"; readonly lost: NewRecord | undefined }
  /** Nothing more can be stored. `once`: the same message has made a task before. */
  | { readonly kind: "refused"; readonly loss: Loss; readonly once: OnceRecord | undefined };

const open: AppendResult = { kind: "open" };
const ended: AppendResult = { kind: "ended" };

/** How a request to end the turn went: it has ended, or a message came in that wants the next one. */
export type TurnEnd = "ended" | "messageWaits";

interface Ending {
  /** The last record of the turn, if it needs one. */
  readonly finish: NewRecord | undefined;
  readonly resolve: (end: TurnEnd) => void;
}

/** Bytes that a task keeps free for its end. */
const endBytes = 8 << 10;

/** End the run of a task that is over, or waits for its user. */
const endOfRun: readonly TaskEffect[] = [
  { effect: "run", run: null },
  { effect: "checkpoint", value: null },
  { effect: "lease", op: "revoke" },
];

/**
 * Writes the log of one task under a fence. What it is given gathers in a batch, which goes down with the next
 * commit. One batch is in flight at a time, so that order is kept without waiting, and both together are bounded, so that
 * a fast agent waits for a slow store.
 *
 * It submits nothing itself: whoever holds it does, passes `take` and `settle` on, and acts on what `settle` gives.
 *
 * The invariant that messages depend on: a task without a run has no message that waits. So a turn ends only if the last
 * record is still the one that the writer knows (`expect`), and ending raises the fence, under which messages are accepted.
 */
export class LogWriter {
  readonly #init: WriterInit;
  readonly #live: LiveLog;
  #pending: Batch;
  #inFlight: Batch | undefined;
  #ending: Ending | undefined;
  /** As of the last commit. */
  #seq: number;
  #fence: number;
  #storedRun: StoredRun | null;
  #isCreated: boolean;
  /** Messages may stand in the log that the run has not read. */
  #unreadMessages: boolean;
  /** Something did not fit into the task: it is ending. */
  #isFull = false;
  #closed = false;
  #isLost = false;
  #waiters: (() => void)[] = [];

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

  /** The state after everything that was written, stored or not. */
  get state(): TaskState {
    return this.#pending.state;
  }

  /** The run after everything that was written, stored or not. */
  get run(): StoredRun | null {
    return this.#pending.run;
  }

  /** The run as it is stored. */
  get storedRun(): StoredRun | null {
    return this.#storedRun;
  }

  /** The fence of the last commit; `undefined` before the task stands. */
  get fence(): number | undefined {
    return this.#isCreated ? this.#fence : undefined;
  }

  /** Nothing more is written. */
  get closed(): boolean {
    return this.#closed;
  }

  /** Whether there is something to be stored that is not in flight. */
  get hasPending(): boolean {
    return !this.#closed && (!this.#pending.isEmpty || this.#ending !== undefined);
  }

  /** Takes records and effects; all of one call are stored together or not at all. A terminal state ends the run with them. */
  write(records: readonly NewRecord[], effects: readonly TaskEffect[]): void {
    if (this.#closed) return;
    const pending = this.#pending;
    for (const record of records) pending.addRecord(record);
    for (const effect of effects) pending.addEffect(effect);
    if (!isTerminal(pending.state)) return;
    pending.run = null;
    pending.effects.push(...endOfRun);
  }

  /** Ends the turn: with `finish` as its last record, or as it stands when the task is interrupted. */
  endTurn(finish: NewRecord | undefined): Promise<TurnEnd> {
    if (this.#closed) return Promise.resolve("ended");
    return new Promise((resolve) => {
      this.#ending = { finish, resolve };
    });
  }

  /** The log was read up to `seq` while nothing was in flight. `unreadMessages`: there are messages that were not read. */
  sawLog(seq: number, unreadMessages: boolean): void {
    this.#seq = seq;
    this.#unreadMessages = unreadMessages;
  }

  /** Resolves once there is room for more; `undefined` where there is. */
  room(): Promise<void> | undefined {
    return this.#isWindowFull ? this.#untilRoom() : undefined;
  }

  /** Resolves once everything written so far is stored; rejects when it cannot be. */
  async flush(): Promise<void> {
    while (this.hasPending || (this.#inFlight !== undefined && !this.#closed)) await this.settled();
    if (this.#isLost) throw new A2AError("Unavailable", "What was yielded last is not stored");
  }

  /** Resolves at the end of the append that is in flight or comes next, or once the writer is closed. */
  settled(): Promise<void> {
    return new Promise((resolve) => this.#waiters.push(resolve));
  }

  /** The item that stores what has gathered. */
  take(): TaskAppend {
    const { task, contextId } = this.#init;
    // Closed while it waited for the store: an item that changes nothing.
    if (this.#closed) return { task, records: [] };
    const ending = this.#endingNow();
    const batch = this.#pending;
    this.#pending = new Batch(batch.state, batch.run);
    this.#inFlight = batch;
    const effects = ending === undefined ? batch.effects : [...batch.effects, ...endOfRun];
    if (ending !== undefined) {
      if (ending.finish !== undefined) batch.addRecord(ending.finish);
      batch.run = null;
    }
    const { records } = batch;
    const bound = this.#bound(batch);
    if (!this.#isCreated) {
      return { task, create: { contextId }, records, ...bound, effects: [this.#acquireLease(), ...effects] };
    }
    const expect = ending === undefined ? {} : { expect: this.#seq };
    return { task, fence: this.#fence, ...expect, records, ...bound, effects };
  }

  /** Takes the outcome of the item that was taken last, and says what came of it. */
  settle(outcome: AppendOutcome): AppendResult {
    const batch = this.#inFlight;
    this.#inFlight = undefined;
    if (batch === undefined || this.#closed) return open;
    const result = this.#resultOf(batch, outcome);
    this.#wake();
    return result;
  }

  /** Nothing more is written. `lost`: what is not stored by now never will be; `error`: because the store failed. */
  close(lost: boolean, error?: A2AError): void {
    this.#closed = true;
    this.#isLost = lost;
    this.#endingIs("ended");
    if (error !== undefined) this.#live.fail(error);
    // A terminal task does not change: its readers may go on with what is in memory.
    if (this.#live.head === undefined || !isTerminal(this.#live.head.state)) this.#live.detach();
    this.#init.liveLogs.release(this.#live);
    this.#wake();
  }

  #resultOf(batch: Batch, outcome: AppendOutcome): AppendResult {
    if (outcome.ok) return this.#stored(batch, outcome.seq, outcome.fence);
    if (outcome.reason === "stale" && this.#ending !== undefined) return this.#putBack(batch, this.#ending);
    if (outcome.reason === "full") return this.#cut(batch, outcome.head);
    const once = outcome.reason === "duplicate" ? outcome.once : undefined;
    return { kind: "refused", loss: lossOf(outcome), once };
  }

  #stored({ records, sizes, state, run }: Batch, seq: number, fence: number): AppendResult {
    const isNew = !this.#isCreated;
    if (!isNew && seq - records.length !== this.#seq) this.#unreadMessages = true;
    this.#seq = seq;
    this.#fence = fence;
    this.#isCreated = true;
    this.#storedRun = run;
    const head = { seq, state, run: run ?? undefined };
    if (isNew) this.#live.attach({ seq: 0, state, run: head.run });
    this.#live.push(records, sizes, head);
    if (run === null) this.#pending.state = state;
    if (isNew) return { kind: "created", log: run === null ? records : undefined };
    return run === null ? ended : open;
  }

  /** Messages stand in the log that the run has not read: the turn has not ended after all. */
  #putBack(batch: Batch, { finish }: Ending): AppendResult {
    this.#unreadMessages = true;
    this.#pending.prepend(batch, batch.records.length - (finish === undefined ? 0 : 1));
    this.#endingIs("messageWaits");
    return open;
  }

  /** The task is full: what still fits waits for the next append, everything after it is dropped. */
  #cut(batch: Batch, head: TaskHead | undefined): AppendResult {
    const room = this.#init.settings.limits.taskBytes - (head?.bytes ?? 0);
    const { kept, lost } = cutToFit(batch, room, head?.state ?? this.state);
    kept.run = this.run;
    this.#pending = kept;
    this.#isFull = true;
    this.#endingIs("ended");
    return { kind: "full", lost };
  }

  /** The ending that goes down with what is pending. A message that is known to wait calls it off. */
  #endingNow(): Ending | undefined {
    if (this.#unreadMessages) this.#endingIs("messageWaits");
    return this.#ending;
  }

  #endingIs(end: TurnEnd): void {
    const ending = this.#ending;
    this.#ending = undefined;
    ending?.resolve(end);
  }

  /** How large the task may get by a batch. What the engine itself says at its end is short, and always fits. */
  #bound({ records, state }: Batch): { readonly maxBytes?: number } {
    if (this.#isFull || !records.some(({ actor }) => actor !== "system")) return {};
    const { taskBytes } = this.#init.settings.limits;
    return { maxBytes: isTerminal(state) ? taskBytes + endBytes : taskBytes };
  }

  #acquireLease(): TaskEffect {
    const { clock, lease } = this.#init.settings;
    const now = clock.now();
    return { effect: "lease", op: "acquire", holder: lease.holder, now, until: now + lease.ttl };
  }

  get #isWindowFull(): boolean {
    const { pendingEvents, pendingBytes } = this.#init.settings.limits;
    const events = this.#pending.records.length + (this.#inFlight?.records.length ?? 0);
    return events >= pendingEvents || this.#pending.bytes + (this.#inFlight?.bytes ?? 0) >= pendingBytes;
  }

  async #untilRoom(): Promise<void> {
    while (this.#isWindowFull && !this.#closed) await this.settled();
  }

  #wake(): void {
    const waiters = this.#waiters;
    if (waiters.length === 0) return;
    this.#waiters = [];
    for (const resolve of waiters) resolve();
  }
}
