import { deferred, utf8Length } from "../../base/index.ts";
import { A2AError, isTerminal, type NewRecord, type TaskState } from "../../model/index.ts";
import {
  recordBytes,
  type AppendOutcome,
  type OnceRecord,
  type Run,
  type TaskAppend,
  type TaskEffect,
  type TaskHead,
  type TaskKey,
} from "../../store/index.ts";
import type { Committer, Submission } from "./committer.ts";
import type { LiveLog } from "./live-log.ts";

/** Why a run may write no more, without having come to an end itself. */
export type Loss = "canceled" | "fenced" | "store" | "shutdown";

/** A cancel from another process raises the fence too (D6): how the task stands tells it from a lease that was lost. */
export function lossOf({ reason, head }: Refused): Loss {
  const canceled = head === undefined ? reason === "terminal" : head.state === "TASK_STATE_CANCELED";
  return canceled ? "canceled" : "fenced";
}

type Refused = Extract<AppendOutcome, { readonly ok: false }>;

export interface WriterStart {
  readonly seq: number;
  readonly state: TaskState;
  readonly fence: number;
  readonly run: Run;
  /** Whether messages may wait in the log for the turns after this one: so it is with a run that another had. */
  readonly mayHaveMessages: boolean;
}

export interface WriterOptions {
  readonly committer: Committer;
  readonly channel: LiveLog;
  readonly task: TaskKey;
  readonly contextId: string;
  /** Where the task stands; absent: it is made by the first records. */
  readonly start?: WriterStart;
  /** The lease that making the task takes. */
  readonly lease: () => TaskEffect;
  readonly limits: { readonly pendingEvents: number; readonly pendingBytes: number; readonly taskBytes: number };
  /** The first commit: the task stands. `log`: and its turn has ended with it; these are all its records. */
  readonly onBorn: (log: readonly NewRecord[] | undefined) => void;
  /** The task was made before, under the same idempotency key. */
  readonly onDuplicate: (once: OnceRecord) => void;
  /**
   * The task is full: this record does not fit into it, and nothing that came after it is stored. What came before is on
   * its way; a terminal status that is written now fits.
   */
  readonly onFull: (record: NewRecord) => void;
  /** Nothing more can be written: the task is over or parked (`undefined`), or lost. Called once. */
  readonly onOver: (loss: Loss | undefined, error: unknown) => void;
}

/** What `endTurn` found: the turn has ended, or messages came in that want the next one. */
export type TurnEnd = "ended" | "more";

interface Ending {
  readonly finish: NewRecord | undefined;
  readonly resolve: (end: TurnEnd) => void;
}

/** What is on its way to the store, and where the task stands once it is there. */
interface Flight {
  readonly records: readonly NewRecord[];
  /** Bytes of each record, and of all that is on its way. */
  readonly sizes: readonly number[];
  readonly bytes: number;
  readonly effects: readonly TaskEffect[];
  readonly state: TaskState;
  readonly run: Run | null;
  readonly ending: Ending | undefined;
}

/** Room that a task keeps for its end. */
const endBytes = 8 << 10;

/** Effects of which only the last one counts: what they set is set anew. */
const replaced: ReadonlySet<TaskEffect["effect"]> = new Set(["checkpoint", "contextState"]);

function isRevoke(effect: TaskEffect): boolean {
  return effect.effect === "lease" && effect.op === "revoke";
}

/** With these a task that is over, or waits for its user, lets go of its run. */
const leaving: readonly TaskEffect[] = [
  { effect: "run", run: null },
  { effect: "checkpoint", value: null },
  { effect: "lease", op: "revoke" },
];

/**
 * Writes the log of one task under a fence (D3, D6). What it is given is gathered and goes down with the next commit,
 * one at a time, so that order is kept without waiting; a bounded window makes a fast agent wait for a slow store.
 *
 * The invariant that messages hang on: a task without a run has no message that waits. So a turn ends only if the last record is
 * still the one that the writer knows (`expect`), and ending raises the fence, under which messages are accepted.
 */
export class LogWriter implements Submission {
  readonly #options: WriterOptions;
  #seq: number;
  #state: TaskState;
  #fence: number | undefined;
  #run: Run | null;
  #records: NewRecord[] = [];
  #sizes: number[] = [];
  #effects: TaskEffect[] = [];
  #bytes = 0;
  #flight: Flight | undefined;
  #submitted = false;
  #ending: Ending | undefined;
  #over = false;
  #lost = false;
  /** Something did not fit into the task: it is ending. */
  #isCut = false;
  /** The run is one that others lost, and nothing new of it is stored yet. */
  #onTrial: boolean;
  readonly #proof = deferred<void>();
  #newcomers: boolean;
  #waiting: (() => void)[] = [];

  constructor(options: WriterOptions) {
    this.#options = options;
    this.#seq = options.start?.seq ?? 0;
    this.#state = options.start?.state ?? "TASK_STATE_SUBMITTED";
    this.#fence = options.start?.fence;
    this.#run = options.start?.run ?? null;
    this.#newcomers = options.start?.mayHaveMessages ?? false;
    this.#onTrial = (options.start?.run.deaths ?? 0) > 0;
  }

  /** The state after everything that was written, stored or not. */
  get state(): TaskState {
    return this.#state;
  }

  get over(): boolean {
    return this.#over;
  }

  /** The fence of the last commit; `undefined` before the task stands. */
  get fence(): number | undefined {
    return this.#fence;
  }

  /** Settles when something new is stored of a run that others had lost, or when it is over. */
  get proven(): Promise<void> {
    return this.#onTrial ? this.#proof.promise : Promise.resolve();
  }

  /** The process has lived with the run for a while: it keeps its deaths, and is no longer alone to blame. */
  acquit(): void {
    if (!this.#onTrial || this.#run?.alone !== true) return;
    const { alone: _, ...run } = this.#run;
    this.write([], [{ effect: "run", run }]);
  }

  /** Takes records and effects; all of one call are stored together or not at all. A terminal state ends the run with them. */
  write(records: readonly NewRecord[], effects: readonly TaskEffect[] = []): void {
    if (this.#over) return;
    for (const record of records) {
      const size = utf8Length(record.json);
      this.#records.push(record);
      this.#sizes.push(size);
      this.#bytes += size;
      if (record.state !== undefined) this.#state = record.state;
    }
    for (const effect of effects) this.#put(effect);
    if (isTerminal(this.#state)) {
      this.#run = null;
      this.#effects.push(...leaving);
    }
    this.#submit();
  }

  #put(effect: TaskEffect): void {
    if (effect.effect === "run") this.#run = effect.run;
    // A checkpoint can be large, and one that another follows at once need not wait for the store.
    if (replaced.has(effect.effect)) this.#effects = this.#effects.filter(({ effect: name }) => name !== effect.effect);
    this.#effects.push(effect);
  }

  /** Whether the window is full; then wait for `room`. */
  get full(): boolean {
    const { pendingEvents, pendingBytes } = this.#options.limits;
    const events = this.#records.length + (this.#flight?.records.length ?? 0);
    return events >= pendingEvents || this.#bytes + (this.#flight?.bytes ?? 0) >= pendingBytes;
  }

  /** Resolves once a commit made room, or the writer is over. */
  async room(): Promise<void> {
    while (this.full && !this.#over) await this.#settled();
  }

  /** Resolves once everything written so far is stored; rejects when it cannot be. */
  async flush(): Promise<void> {
    while (this.#submitted && !this.#over) await this.#settled();
    if (this.#lost) throw new A2AError("Unavailable", "What was yielded last is not stored");
  }

  /**
   * Ends the turn: with `finish` as its last record, or as it stands when the task is interrupted. `more` when a message
   * came in meanwhile: the turn has not ended then, the next one is to begin.
   */
  endTurn(finish: NewRecord | undefined): Promise<TurnEnd> {
    if (this.#over) return Promise.resolve("ended");
    return new Promise((resolve) => {
      this.#ending = { finish, resolve };
      this.#submit();
    });
  }

  /** The log was read up to `seq`, while nothing was on its way to it: `waiting` says whether messages are left that wait. */
  sawLog(seq: number, waiting: boolean): void {
    this.#seq = seq;
    this.#newcomers = waiting;
  }

  /** Gives the run up: nothing more is written. */
  lose(loss: Loss, error?: unknown): void {
    this.#finish(loss, error);
  }

  /** Gives the lease back and leaves the run for another to take over. */
  async handBack(): Promise<void> {
    // Given back in good order it counts as no death.
    if (this.#onTrial && this.#run !== null) {
      const { turn, attempt, input, deaths = 1 } = this.#run;
      this.write([], [{ effect: "run", run: { turn, attempt, input, deaths: deaths - 1 } }]);
    }
    this.write([], [{ effect: "lease", op: "release" }]);
    await this.flush().catch(() => {});
    this.#finish("shutdown", undefined);
  }

  take(): TaskAppend {
    const { task, contextId, lease } = this.#options;
    // Given up while it waited for the store: an item that changes nothing.
    if (this.#over) return { task, records: [] };
    const ending = this.#endingNow();
    this.#prove();
    const records = ending?.finish === undefined ? this.#records : [...this.#records, ending.finish];
    const effects = this.#effects;
    this.#flight = {
      records,
      sizes: ending?.finish === undefined ? this.#sizes : [...this.#sizes, utf8Length(ending.finish.json)],
      bytes: this.#bytes,
      effects,
      state: ending?.finish?.state ?? this.#state,
      run: ending === undefined ? this.#run : null,
      ending,
    };
    this.#records = [];
    this.#sizes = [];
    this.#effects = [];
    this.#bytes = 0;
    const all = ending === undefined ? effects : [...effects, ...leaving];
    const bound = this.#bound(records);
    if (this.#fence === undefined)
      return { task, create: { contextId }, records, ...bound, effects: [lease(), ...all] };
    const expect = ending === undefined ? {} : { expect: this.#seq };
    return { task, fence: this.#fence, ...expect, records, ...bound, effects: all };
  }

  /** With something new the run is one like any other. */
  #prove(): void {
    if (!this.#onTrial || this.#run === null) return;
    const isNew = this.#records.length > 0 || this.#effects.some(({ effect }) => effect === "checkpoint");
    if (!isNew) return;
    const { turn, attempt, input } = this.#run;
    this.#put({ effect: "run", run: { turn, attempt, input } });
  }

  /** How large the task may get by these records. Its end always fits: what the engine itself says is short, and unbounded. */
  #bound(records: readonly NewRecord[]): { readonly maxBytes?: number } {
    if (this.#isCut || !records.some(({ actor }) => actor !== "system")) return {};
    const { taskBytes } = this.#options.limits;
    return { maxBytes: isTerminal(this.#flight?.state ?? this.#state) ? taskBytes + endBytes : taskBytes };
  }

  settle(outcome: AppendOutcome): void {
    const flight = this.#flight;
    this.#flight = undefined;
    this.#submitted = false;
    if (flight === undefined || this.#over) return;
    if (outcome.ok) this.#stored(flight, outcome.seq, outcome.fence);
    else if (outcome.reason === "stale" && flight.ending !== undefined) this.#takeBack(flight, flight.ending);
    else if (outcome.reason === "full") this.#cut(flight, outcome.head);
    else {
      if (outcome.reason === "duplicate" && outcome.once !== undefined) this.#options.onDuplicate(outcome.once);
      this.#finish(lossOf(outcome), undefined);
    }
    this.#wake();
    if (this.#records.length > 0 || this.#effects.length > 0 || this.#ending !== undefined) this.#submit();
  }

  fail(error: unknown): void {
    this.#finish("store", error);
  }

  #stored(flight: Flight, seq: number, fence: number): void {
    const born = this.#fence === undefined;
    if (!born && seq - flight.records.length !== this.#seq) this.#newcomers = true;
    this.#seq = seq;
    this.#fence = fence;
    if (this.#onTrial && (flight.run?.deaths ?? 0) === 0) {
      this.#onTrial = false;
      this.#proof.resolve();
    }
    const { channel, onBorn } = this.#options;
    const head = { seq, state: flight.state, run: flight.run ?? undefined };
    if (born) channel.attach({ seq: 0, state: head.state, run: head.run });
    channel.push(flight.records, flight.sizes, head);
    if (born) onBorn(flight.run === null ? flight.records : undefined);
    if (flight.run === null) {
      this.#state = flight.state;
      this.#finish(undefined, undefined);
    }
  }

  /** Messages stand in the log that the writer did not know of: the turn has not ended after all. */
  #takeBack(flight: Flight, ending: Ending): void {
    this.#newcomers = true;
    this.#ending = undefined;
    const kept = flight.records.length - (ending.finish === undefined ? 0 : 1);
    this.#records = [...flight.records.slice(0, kept), ...this.#records];
    this.#sizes = [...flight.sizes.slice(0, kept), ...this.#sizes];
    this.#effects = [...flight.effects, ...this.#effects];
    this.#bytes += flight.bytes;
    ending.resolve("more");
  }

  /** The task is full: what fits of the records goes down, and what came after the first that does not is lost with it. */
  #cut(flight: Flight, head: TaskHead | undefined): void {
    const { limits, onFull } = this.#options;
    let room = limits.taskBytes - (head?.bytes ?? 0);
    const fits = flight.records.findIndex((record) => (room -= recordBytes(record)) < 0);
    const kept = fits === -1 ? flight.records.length - 1 : fits;
    this.#records = flight.records.slice(0, kept);
    this.#sizes = flight.sizes.slice(0, kept);
    this.#bytes = this.#sizes.reduce((sum, size) => sum + size, 0);
    this.#effects = flight.effects.filter((effect) => effect.effect !== "checkpoint" && !isRevoke(effect));
    this.#isCut = true;
    this.#state = this.#records.findLast(({ state }) => state !== undefined)?.state ?? head?.state ?? this.#state;
    this.#ending?.resolve("ended");
    this.#ending = undefined;
    const lost = flight.records[kept];
    if (lost !== undefined) onFull(lost);
  }

  /** The ending that can go down with what is written; messages that are known to wait call it off. */
  #endingNow(): Ending | undefined {
    const ending = this.#ending;
    if (ending === undefined || !this.#newcomers) return ending;
    this.#ending = undefined;
    ending.resolve("more");
    return undefined;
  }

  #submit(): void {
    if (this.#submitted || this.#over) return;
    this.#submitted = true;
    this.#options.committer.submit(this);
  }

  #settled(): Promise<void> {
    return new Promise((resolve) => this.#waiting.push(resolve));
  }

  #wake(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const resolve of waiting) resolve();
  }

  #finish(loss: Loss | undefined, error: unknown): void {
    if (this.#over) return;
    this.#over = true;
    this.#lost = loss !== undefined;
    this.#ending?.resolve("ended");
    this.#ending = undefined;
    this.#proof.resolve();
    this.#options.onOver(loss, error);
    this.#wake();
  }
}
