import { utf8Length } from "../../base/index.ts";
import type { NewRecord, TaskState } from "../../model/index.ts";
import { recordBytes, type AppendOutcome, type StoredRun, type TaskEffect } from "../../store/index.ts";

/** Effects of which only the last one of a batch counts: what they set is set anew. A checkpoint can be large. */
const replaceable: ReadonlySet<TaskEffect["effect"]> = new Set(["checkpoint", "contextState"]);

/** What one append stores of a task: records in their order, effects, and how the task stands after them. */
export class Batch {
  records: NewRecord[] = [];
  /** UTF-8 bytes of each record, and of all. */
  sizes: number[] = [];
  bytes = 0;
  effects: TaskEffect[] = [];
  state: TaskState;
  /** `null`: the task has no run after it. */
  run: StoredRun | null;

  /** Empty: the task stands as it did before. */
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
  }

  /** Puts the first `count` records and all effects of a batch that was not stored before those of this one. */
  prepend(refused: Batch, count: number): void {
    const sizes = refused.sizes.slice(0, count);
    this.records = [...refused.records.slice(0, count), ...this.records];
    this.sizes = [...sizes, ...this.sizes];
    this.bytes += sizes.reduce((sum, size) => sum + size, 0);
    this.effects = [...refused.effects, ...this.effects];
  }
}

/**
 * The beginning of a batch that is too large for its task: the records that fit into `room` bytes, and the first that
 * does not, which is lost with all that comes after it. A checkpoint would tell of what is lost, and the end of the lease
 * belongs to a status that is.
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
  kept.effects = batch.effects.filter((effect) => effect.effect !== "checkpoint" && !isRevoke(effect));
  return { kept, lost: batch.records[count] };
}

function isRevoke(effect: TaskEffect): boolean {
  return effect.effect === "lease" && effect.op === "revoke";
}

/** Why a run may write no more, without having come to an end itself. */
export type Loss = "canceled" | "fenced" | "store" | "shutdown";

/** A cancel from another process raises the fence too: how the task stands tells it from a lease that was lost. */
export function lossOf({ reason, head }: Extract<AppendOutcome, { readonly ok: false }>): Loss {
  const canceled = head === undefined ? reason === "terminal" : head.state === "TASK_STATE_CANCELED";
  return canceled ? "canceled" : "fenced";
}
