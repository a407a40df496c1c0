import { utf8Length } from "../../base/index.ts";
import type { NewRecord, TaskState } from "../../model/index.ts";
import {
  checkFeature,
  recordBytes,
  type AppendOutcome,
  type FeatureEffect,
  type OnceRecord,
  type StoredRun,
  type TaskEffect,
} from "../../store/index.ts";

/** Effects of which a batch keeps the last one only: each replaces the one before, and a checkpoint can be large. */
const replaceable: ReadonlySet<TaskEffect["effect"]> = new Set(["checkpoint", "contextState"]);

/** What one append stores: records in their order, effects, and the state and the run of the task after them. */
export class Batch {
  records: NewRecord[] = [];
  /** UTF-8 bytes of each record, and of all together. */
  sizes: number[] = [];
  bytes = 0;
  effects: TaskEffect[] = [];
  /** How many records stood before each effect of a feature: those that it goes with. */
  #places: Map<TaskEffect, number> | undefined;
  state: TaskState;
  /** `null`: the task has no run any more. */
  run: StoredRun | null;

  /** An empty batch, for a task in this state and with this run. */
  constructor(state: TaskState, run: StoredRun | null) {
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

  addEffect(effect: TaskEffect): void {
    if (effect.effect === "run") this.run = effect.run;
    if (replaceable.has(effect.effect)) this.effects = this.effects.filter((each) => each.effect !== effect.effect);
    this.effects.push(effect);
    if (effect.effect === "feature") {
      this.#place(effect, this.records.length);
      this.bytes += effect.op === "set" ? utf8Length(effect.value) : 0;
    }
  }

  /** Puts the first `count` records and all effects of `refused`, a batch that was not stored, before its own. */
  prepend(refused: Batch, count: number): void {
    const sizes = refused.sizes.slice(0, count);
    this.records = [...refused.records.slice(0, count), ...this.records];
    this.sizes = [...sizes, ...this.sizes];
    this.bytes += refused.bytes - refused.sizes.slice(count).reduce((sum, size) => sum + size, 0);
    this.effects = [...refused.effects, ...this.effects];
    for (const [effect, place] of this.#places ?? []) this.#place(effect, place + count);
    for (const [effect, place] of refused.#places ?? []) this.#place(effect, place);
  }

  /** Whether an effect belongs to the first `count` records. */
  goesWith(effect: TaskEffect, count: number): boolean {
    return (this.#places?.get(effect) ?? 0) <= count;
  }

  #place(effect: TaskEffect, place: number): void {
    this.#places ??= new Map();
    this.#places.set(effect, place);
  }
}

/**
 * Cuts a batch that is too large for its task. `kept` has the records that fit into `room` bytes, `lost` is the first that
 * does not. Some effects are dropped as well: a checkpoint, which would cover lost records, the end of the lease, which
 * belongs to a lost terminal status, and the rows of features that go with lost records.
 */
export function cutToFit(
  batch: Batch,
  room: number,
  before: TaskState,
): { readonly kept: Batch; readonly lost: NewRecord | undefined } {
  let left = room;
  const fits = batch.records.findIndex((record) => (left -= recordBytes(record)) < 0);
  const count = fits === -1 ? batch.records.length - 1 : fits;
  const kept = new Batch(before, batch.run);
  for (const record of batch.records.slice(0, count)) kept.addRecord(record);
  for (const effect of batch.effects) {
    if (effect.effect === "checkpoint" || isRevoke(effect) || !batch.goesWith(effect, count)) continue;
    kept.addEffect(effect);
  }
  return { kept, lost: batch.records[count] };
}

function isRevoke(effect: TaskEffect): boolean {
  return effect.effect === "lease" && effect.op === "revoke";
}

/** An effect of a feature as its caller gives it. */
type FeatureChange<Effect extends FeatureEffect = FeatureEffect> = Effect extends unknown
  ? Omit<Effect, "effect">
  : never;

/** Adds changes of rows to `effects`. Throws a `TypeError` for what no store accepts. */
export function keepIn(effects: FeatureEffect[]): (change: FeatureChange) => void {
  return (change) => {
    const effect: FeatureEffect = { effect: "feature", ...change };
    checkFeature(effect);
    effects.push(effect);
  };
}

/** Effects that end the run of a task: it has reached a terminal state, or waits for its user. */
export const endOfRun: readonly TaskEffect[] = [
  { effect: "run", run: null },
  { effect: "checkpoint", value: null },
  { effect: "lease", op: "revoke" },
];

/** The result of an append. */
export type AppendResult =
  /** It is stored, and the turn goes on. Or a message was first: the batch is appended again, without the end of the turn. */
  | { readonly kind: "open" }
  /** The task was created. `log`: all of its records, where its turn has ended too. */
  | { readonly kind: "created"; readonly log: readonly NewRecord[] | undefined }
  /** The turn has ended: the task is over, or waits for its user. */
  | { readonly kind: "ended" }
  /**
   * The task has no room for `lost`, which is dropped with everything after it. The records before it are appended next,
   * and leave the task in `state`.
   */
  | { readonly kind: "full"; readonly lost: NewRecord | undefined; readonly state: TaskState }
  /** Nothing more can be stored. `once`: the same message has made a task before. */
  | { readonly kind: "refused"; readonly loss: Loss; readonly once: OnceRecord | undefined }
  /** The store failed. */
  | { readonly kind: "failed"; readonly error: unknown };

/** Why a run may write no more, although its turn has not ended. */
export type Loss = "canceled" | "fenced" | "store" | "shutdown";

/** The loss that a refused append shows. A cancel in another process raises the fence too: only the state of the task tells. */
export function lossOf({ reason, head }: Extract<AppendOutcome, { readonly ok: false }>): Loss {
  const canceled = head === undefined ? reason === "terminal" : head.state === "TASK_STATE_CANCELED";
  return canceled ? "canceled" : "fenced";
}
