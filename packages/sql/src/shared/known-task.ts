import { type TaskState, stateKinds } from "@parley/a2a/internal/model/index";
import type { ReadItem, TaskHead } from "@parley/server/internal/store/index";
import { encodeName, stateNumber, trialOf, type TaskRow, type Value } from "./rows.ts";

// A task while its transaction lasts, and the columns of its row.

/** A task as a writer knows it. */
export interface KnownTask {
  readonly row: Pick<TaskRow, "number" | "agent" | "owner" | "context">;
  /** The head in the table; absent until the transaction that creates the task ends. */
  stored: TaskHead | undefined;
  storedStatus: number;
  head: TaskHead;
  statusSeq: number;
  hasMetadata: boolean;
  /** Whether features may keep rows with the task. */
  hasFeatures: boolean;
}

type Status = Pick<KnownTask, "statusSeq" | "hasMetadata">;

/** The seq of the last status after an item, and whether any record has metadata. */
export function statusOf({ records }: ReadItem, { seq }: TaskHead, before: Status): Status {
  const last = records.findLastIndex(({ record }) => record.kind === "statusUpdate");
  return {
    statusSeq: last < 0 ? before.statusSeq : seq - records.length + last + 1,
    hasMetadata: before.hasMetadata || records.some((read) => read.hasMetadata),
  };
}

/** Whether an agent has stopped working on a task. */
export function isPause(state: TaskState | undefined): boolean {
  return state !== undefined && stateKinds[state] !== "active";
}

// The columns that an append changes: of every append, without an index, of the lists, of the runs.
export const growing: readonly string[] = ["seq", "generation", "bytes"];
const running = ["run_attempt", "run_input", "run_deaths", "run_alone"];
export const plain: readonly string[] = [...growing, "fence", "status_seq", "has_metadata", "holder", ...running];
export const placing: readonly string[] = ["state", "status_time"];
export const owning: readonly string[] = ["lease_until", "run_turn"];

/** The columns that never change. */
export const identity: readonly string[] = ["number", "agent", "owner", "context", "id", "first_seq"];

/** Whether the log of a task is longer and nothing else of its row has changed. Metadata changes with a status only. */
export function hasGrown({ head, statusSeq, storedStatus }: KnownTask, stored: TaskHead): boolean {
  if (head.seq === stored.seq || statusSeq !== storedStatus) return false;
  const sameStatus = head.state === stored.state && head.statusTime === stored.statusTime;
  const sameLease =
    head.fence === stored.fence && head.holder === stored.holder && head.leaseUntil === stored.leaseUntil;
  return sameStatus && sameLease && head.run === stored.run;
}

/** The values of `plain`. */
export function plainOf({
  head,
  statusSeq,
  hasMetadata,
}: Pick<KnownTask, "head" | "statusSeq" | "hasMetadata">): readonly Value[] {
  const { seq, generation, bytes, fence, holder, run } = head;
  const name = holder === undefined ? null : encodeName(holder);
  const status = [statusSeq, hasMetadata ? 1 : 0];
  const trial = [run?.deaths ?? null, trialOf(run)];
  return [seq, generation, bytes, fence, ...status, name, run?.attempt ?? null, run?.input ?? null, ...trial];
}

/** The values of `placing`. */
export function placingOf({ state, statusTime }: TaskHead): readonly Value[] {
  return [stateNumber(state), statusTime];
}

/** The values of `owning`. */
export function owningOf({ leaseUntil, run }: TaskHead): readonly Value[] {
  return [leaseUntil ?? null, run?.turn ?? null];
}

/** The values of `identity`. */
export function identityOf({ row, head }: Pick<KnownTask, "row" | "head">): readonly Value[] {
  return [row.number, row.agent, row.owner, row.context, encodeName(head.task.taskId), head.firstSeq];
}
