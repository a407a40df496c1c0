import { utf8Length, type Logger } from "@parley/a2a/internal/base/index";
import { isTerminal, type NewRecord, type TaskState } from "@parley/a2a/internal/model/index";
import {
  checkFeature,
  delegationFeature,
  featureBounds,
  recordBytes,
  type AppendOutcome,
  type FeatureEffect,
  type OnceRecord,
  type StoredRun,
  type TaskEffect,
  type TaskHead,
} from "../../store/index.ts";
import type { EngineSettings } from "../shared/settings.ts";

/** Kinds of effects that replace each other. A batch keeps only the last effect of such a kind, because a checkpoint can be large. */
const replaceable: ReadonlySet<TaskEffect["effect"]> = new Set(["checkpoint", "taskState", "contextState"]);

/** The content of one append: records in order, effects, and the state and run of the task after the append. */
export class Batch {
  records: NewRecord[] = [];
  /** UTF-8 bytes of each record. `bytes`: of all records and rows together. */
  sizes: number[] = [];
  bytes = 0;
  effects: TaskEffect[] = [];
  /** The number of records before each effect of a feature. The effect belongs to the last of these records. */
  #places: Map<TaskEffect, number> | undefined;
  /** The state of the task before the records. */
  from: TaskState;
  state: TaskState;
  /** The run of the task after the append. `null`: no run. */
  run: StoredRun | null;

  constructor(state: TaskState, run: StoredRun | null) {
    this.from = state;
    this.state = state;
    this.run = run;
  }

  get isEmpty(): boolean {
    return this.records.length === 0 && this.effects.length === 0;
  }

  addRecord(record: NewRecord): void {
    const size = utf8Length(record.json);
    this.records.push(record);
    this.sizes.push(size);
    this.bytes += size;
    if (record.state !== undefined) this.state = record.state;
  }

  /** `place`: the number of records before the effect of a feature. */
  addEffect(effect: TaskEffect, place: number = this.records.length): void {
    if (effect.effect === "run") this.run = effect.run;
    if (replaceable.has(effect.effect)) this.effects = this.effects.filter((each) => each.effect !== effect.effect);
    // A delegation stores its progress with each chunk, so keep only the last progress.
    if (isProgressRow(effect)) {
      this.effects = this.effects.filter((each) => !(isProgressRow(each) && each.key === effect.key));
    }
    this.effects.push(effect);
    if (effect.effect === "feature") {
      this.#place(effect, place);
      this.bytes += rowBytes(effect);
    }
  }

  /** Adds the first `count` records and all effects of `refused`, a batch that was not stored, before the records and effects of this batch. */
  prepend(refused: Batch, count: number): void {
    const sizes = refused.sizes.slice(0, count);
    this.from = refused.from;
    this.records = [...refused.records.slice(0, count), ...this.records];
    this.sizes = [...sizes, ...this.sizes];
    this.bytes += refused.bytes - refused.sizes.slice(count).reduce((sum, size) => sum + size, 0);
    this.effects = [...refused.effects, ...this.effects];
    for (const [effect, place] of this.#places ?? []) this.#place(effect, place + count);
    for (const [effect, place] of refused.#places ?? []) this.#place(effect, place);
  }

  /** The number of records before the effect of a feature; 0 for other effects. */
  placeOf(effect: TaskEffect): number {
    return this.#places?.get(effect) ?? 0;
  }

  get lastWithRows(): number | undefined {
    const last = this.effects.findLast((effect) => effect.effect === "feature" && effect.op === "set");
    return last && this.placeOf(last) - 1;
  }

  #place(effect: TaskEffect, place: number): void {
    this.#places ??= new Map();
    this.#places.set(effect, place);
  }
}

function isProgressRow(effect: TaskEffect): effect is Extract<FeatureEffect, { op: "set" }> {
  return effect.effect === "feature" && effect.op === "set" && effect.feature === delegationFeature;
}

function rowBytes(effect: FeatureEffect): number {
  if (effect.op === "wake") return 0;
  return utf8Length(effect.feature) + utf8Length(effect.key) + (effect.op === "set" ? utf8Length(effect.value) : 0);
}

/**
 * Cuts a batch that is too large for its task. `before` is the task before the batch. `kept` has the records that fit, `lost`
 * is the first record that does not. If all records fit, the task has too many rows: `lost` is then the last record that sets
 * a row, and `rows` is true. The next append shows whether the remaining rows fit. Effects that depend on lost records
 * are dropped, too: a checkpoint, which would cover these records, the end of the lease, which belongs to a lost terminal status,
 * and the feature rows of these records.
 */
export function cutToFit(
  batch: Batch,
  taskBytes: number,
  before: Pick<TaskHead, "bytes" | "state">,
): { readonly kept: Batch; readonly lost: NewRecord | undefined; readonly rows: boolean } {
  let left = roomFor(batch, taskBytes, before.bytes);
  const fits = batch.records.findIndex((record) => (left -= recordBytes(record)) < 0);
  const withRows = fits === -1 ? batch.lastWithRows : undefined;
  const count = fits === -1 ? (withRows ?? batch.records.length - 1) : fits;
  const kept = new Batch(before.state, batch.run);
  for (const record of batch.records.slice(0, count)) kept.addRecord(record);
  for (const effect of batch.effects) {
    const place = batch.placeOf(effect);
    if (effect.effect === "checkpoint" || isRevoke(effect) || place > count) continue;
    kept.addEffect(effect, place);
  }
  return { kept, lost: batch.records[count], rows: withRows !== undefined };
}

/**
 * How many bytes of records a task of `before` bytes has room for, if the store rejected this batch. `Infinity` if the
 * records are within the limit, so that the store must have rejected their rows. A status that ends the task may exceed `taskBytes`.
 */
function roomFor(batch: Batch, taskBytes: number, before: number): number {
  const { maxBytes = Infinity } = boundOf(batch, taskBytes);
  const bytes = batch.records.reduce((sum, record) => sum + recordBytes(record), before);
  return bytes > maxBytes ? taskBytes - before : Infinity;
}

function isRevoke(effect: TaskEffect): boolean {
  return effect.effect === "lease" && effect.op === "revoke";
}

/** An effect of a feature, as passed by its caller. */
type FeatureChange<Effect extends FeatureEffect = FeatureEffect> = Effect extends unknown
  ? Omit<Effect, "effect">
  : never;

/**
 * Adds changes of rows to `effects`, which belong to one record. Throws a `TypeError` for changes that no store accepts, and for more
 * rows than a task may have. Merges several changes of a row, so that a hook cannot fill the memory.
 */
export function keepIn(effects: FeatureEffect[]): (change: FeatureChange<RowEffect>) => void {
  /** The last change of each row, and its index in `effects`. */
  const last = new Map<string, { readonly at: number; readonly op: RowEffect["op"] }>();
  let rows = 0;
  return (change) => {
    const effect: RowEffect = { effect: "feature", ...change };
    checkFeature(effect);
    const { op, feature, key } = effect;
    const name = JSON.stringify([feature, key]);
    const before = last.get(name);
    if (op === "set" && before?.op !== "set" && rows === featureBounds.rows) throw tooManyRows();
    rows += Number(op === "set") - Number(before?.op === "set");
    // If a row is deleted and set again, keep both changes, because the row moves to the end of the rows.
    const at = before === undefined || (before.op === "delete" && op === "set") ? effects.length : before.at;
    effects[at] = effect;
    last.set(name, { at, op });
  };
}

type RowEffect = Exclude<FeatureEffect, { readonly op: "wake" }>;

export function tooManyRows(): TypeError {
  return new TypeError(`A task has at most ${featureBounds.rows} rows of features`);
}

/** Effects that end the run of a task that has reached a terminal state, or waits for its user. */
export const endOfRun: readonly TaskEffect[] = [
  { effect: "run", run: null },
  { effect: "checkpoint", value: null },
  { effect: "lease", op: "revoke" },
];

/** The outcome of `endTurn`: the turn has ended, or the log has a message that needs another turn. */
export type TurnEnd = "ended" | "messageWaits";

export interface Ending {
  readonly finish: NewRecord | undefined;
  /** `suspends` and `waits`: the turn resumes later with its checkpoint, once its question is answered or its wait is over. */
  readonly how: "ends" | "suspends" | "waits";
  /** Effects that store the states set by the turn. Stored only when it ends, because after a lost attempt, the next needs the earlier states. */
  readonly states: readonly TaskEffect[];
  readonly resolve: (end: TurnEnd) => void;
}

/** Like `endOfRun`, for a turn that resumes from its checkpoint. */
export const endOfSuspendedRun: readonly TaskEffect[] = endOfRun.filter(({ effect }) => effect !== "checkpoint");

export function withEnd(effects: readonly TaskEffect[], ending: Ending | undefined): readonly TaskEffect[] {
  if (ending === undefined) return effects;
  const { how, states } = ending;
  const before =
    states.length === 0 ? effects : effects.filter((each) => !states.some(({ effect }) => effect === each.effect));
  return [...before, ...states, ...(how === "ends" ? endOfRun : endOfSuspendedRun)];
}

/** The effect that takes the lease of a task for this process. `now`: milliseconds since the Unix epoch. */
export function acquireLease({ holder, term }: EngineSettings["lease"], now: number): TaskEffect {
  return { effect: "lease", op: "acquire", holder, now, until: now + term };
}

/** A terminal status may exceed the limit of a task by this many bytes. */
const endBytes = 8 << 10;

/** The size limit of a task for an append. The engine's own statuses are short and have no limit. */
export function boundOf({ records, state }: Batch, taskBytes: number): { readonly maxBytes?: number } {
  if (taskBytes === Infinity || !records.some(({ actor }) => actor !== "system")) return {};
  return { maxBytes: isTerminal(state) ? taskBytes + endBytes : taskBytes };
}

export type Kept = readonly (readonly FeatureEffect[])[];

export type AppendResult =
  /** The turn continues: the batch was stored, or a message arrived first, and the writer appends the batch again without the end of the turn. */
  | { readonly kind: "open" }
  /** The task was created. `ended`: whether its turn has ended, too. `log`: all records, if they contain the answer to the task's message. */
  | { readonly kind: "created"; readonly ended: boolean; readonly log: readonly NewRecord[] | undefined }
  /** The turn has ended: the task is terminal or waits for its user. */
  | { readonly kind: "ended" }
  /**
   * The task has no room for `lost`, which is dropped with everything after it. The records before it are appended next,
   * and leave the task in `state`. `rows`: whether the task has too many feature rows, instead of too many bytes.
   */
  | { readonly kind: "full"; readonly lost: NewRecord | undefined; readonly rows: boolean; readonly state: TaskState }
  /** The run can store no more. `once`: the same message has already created a task. */
  | { readonly kind: "refused"; readonly loss: Loss; readonly once: OnceRecord | undefined }
  | { readonly kind: "failed"; readonly error: unknown };

/** Why a run must stop writing before its turn has ended. */
export type Loss = "canceled" | "fenced" | "cutOff" | "store" | "shutdown";

/** The reason for the loss, by a failed append. A cancel in another process also raises the fence, so the task's state decides. */
export function lossOf({ reason, head }: Extract<AppendOutcome, { readonly ok: false }>): Loss {
  const canceled = head === undefined ? reason === "terminal" : head.state === "TASK_STATE_CANCELED";
  return canceled ? "canceled" : "fenced";
}

/** An optional addition of extensions to a record. */
export interface Addition {
  readonly by: readonly string[];
  /** The record without the addition. */
  readonly bare: () => NewRecord;
  readonly rows: readonly FeatureEffect[];
}

/** Optional additions of extensions to records that are not stored yet. They are dropped if the task has no room. */
export class Additions {
  readonly #logger: Logger;
  readonly #of = new WeakMap<NewRecord, Addition>();
  /** Dropped additions that have been logged. */
  readonly #told = new Set<string>();

  constructor(logger: Logger) {
    this.#logger = logger;
  }

  note(record: NewRecord, addition: Addition): void {
    this.#of.set(record, addition);
  }

  forget(records: readonly NewRecord[]): void {
    for (const record of records) this.#of.delete(record);
  }

  /** Logs a dropped addition, only once for each extension and limit, because a full task stays full. */
  leftOut(by: readonly string[], limit: string): void {
    for (const extension of by) {
      const line = `${limit} ${extension}`;
      if (this.#told.has(line)) continue;
      this.#told.add(line);
      this.#logger.warn("Extension data left out: it does not fit", { extension, limit });
    }
  }

  /** The batch without additions. `undefined`: the batch has no additions. */
  withoutAny(batch: Batch): Batch | undefined {
    const found = batch.records.map((record) => this.#bare(record));
    if (found.every((each) => each === undefined)) return undefined;
    const left = new Batch(batch.from, batch.run);
    batch.records.forEach((record, at) => left.addRecord(found[at]?.bare ?? record));
    const rows = new Set(found.flatMap((each) => each?.rows ?? []));
    for (const effect of batch.effects) {
      if (effect.effect !== "feature" || !rows.has(effect)) left.addEffect(effect, batch.placeOf(effect));
    }
    return left;
  }

  #bare(record: NewRecord): { readonly bare: NewRecord; readonly rows: readonly FeatureEffect[] } | undefined {
    const bare = this.bareOf(record);
    const addition = this.#of.get(record);
    this.#of.delete(record);
    if (bare === undefined || addition === undefined) return undefined;
    const { by, rows } = addition;
    this.leftOut(by, "limits.taskBytes");
    return { bare, rows: rows.filter(({ feature }) => by.includes(feature)) };
  }

  /** The record without its addition. `undefined`: the record stays unchanged, because it has no addition or another extension needs the addition. */
  bareOf(record: NewRecord): NewRecord | undefined {
    try {
      return this.#of.get(record)?.bare();
    } catch {
      return undefined;
    }
  }
}
