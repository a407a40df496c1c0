import { stateKinds, type TaskState } from "@parley/a2a/internal/model/index";
import {
  baseOf,
  decide,
  type AppendOutcome,
  type AuditedAct,
  type ContextAppend,
  type ContextEffect,
  type ContextKey,
  type ContextMessageEffect,
  type FeatureEffect,
  type OnceEffect,
  type OnceRecord,
  type Owner,
  type ReadItem,
  type ReadRecord,
  type TaskAppend,
  type TaskEffect,
  type TaskHead,
  type TaskKey,
} from "@parley/server/internal/store/index";
import type { GrownTask } from "./search.ts";
import { encodeName, maxSeq, stateNumber, trialOf, type TaskRow, type Value } from "./rows.ts";

// Decides the items of a transaction, and collects the task rows to write.

/** A task as cached by a writer. */
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

/** The seq of the last status after an item, and whether any record has metadata. */
function statusOf(
  { records }: ReadItem,
  { seq }: TaskHead,
  before: Pick<KnownTask, "statusSeq" | "hasMetadata">,
): Pick<KnownTask, "statusSeq" | "hasMetadata"> {
  const last = records.findLastIndex(({ record }) => record.kind === "statusUpdate");
  return {
    statusSeq: last < 0 ? before.statusSeq : seq - records.length + last + 1,
    hasMetadata: before.hasMetadata || records.some((read) => read.hasMetadata),
  };
}

/** Whether an agent has stopped working on a task. */
function isPause(state: TaskState | undefined): boolean {
  return state !== undefined && stateKinds[state] !== "active";
}

/** Whether the search index needs an update after a record, because the record has texts or completes artifacts. */
export function addsTexts({ inHistory, record }: ReadRecord): boolean {
  return inHistory || isPause(record.state);
}

/** A task for the update of the search index. */
export function grownTask({ row, head }: KnownTask): GrownTask {
  const { state, seq, firstSeq } = head;
  return { number: row.number, owner: row.owner, seq, isActive: !isPause(state), firstSeq };
}

// Groups of columns: changed by every append; without an index; for the order of lists; for runs.
export const growing: readonly string[] = ["seq", "generation", "bytes"];
const running = ["run_attempt", "run_input", "run_deaths", "run_alone"];
export const plain: readonly string[] = [...growing, "fence", "status_seq", "has_metadata", "holder", ...running];
export const placing: readonly string[] = ["state", "status_time"];
export const owning: readonly string[] = ["lease_until", "run_turn"];

/** The columns that never change. */
export const identity: readonly string[] = ["number", "agent", "owner", "context", "id", "first_seq"];

/** Whether an append only made the log of a task longer. Metadata changes only with a status. */
export function hasGrown({ head, statusSeq, storedStatus }: KnownTask, stored: TaskHead): boolean {
  if (head.seq === stored.seq || statusSeq !== storedStatus) return false;
  const sameStatus = head.state === stored.state && head.statusTime === stored.statusTime;
  const sameLease =
    head.fence === stored.fence && head.holder === stored.holder && head.leaseUntil === stored.leaseUntil;
  return sameStatus && sameLease && head.run === stored.run;
}

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

export function placingOf({ state, statusTime }: TaskHead): readonly Value[] {
  return [stateNumber(state), statusTime];
}

export function owningOf({ leaseUntil, run }: TaskHead): readonly Value[] {
  return [leaseUntil ?? null, run?.turn ?? null];
}

export function identityOf({ row, head }: Pick<KnownTask, "row" | "head">): readonly Value[] {
  return [row.number, row.agent, row.owner, row.context, encodeName(head.task.taskId), head.firstSeq];
}

/** An item whose records were read. */
export type ReadAppend = ReadItem | ContextAppend;

/** Tables with one value for each task or context, and the column of their key. */
export const valueTables = { checkpoints: "task", task_states: "task", context_states: "context" } as const;
export type ValueTable = keyof typeof valueTables;

/** The context and task of an idempotency key. Deleting either deletes the key. */
export interface KeyPlace {
  readonly owner: number;
  readonly task: number | null;
  readonly context: number | null;
}

/** The context of an item. */
export interface FoundContext {
  readonly id: number;
  readonly owner: number;
  readonly name: string;
}

type Effects = readonly (TaskEffect | ContextEffect)[];

/** The state of a transaction, and the changes that it collects. */
export interface Changes<Task extends KnownTask> {
  readonly keys: {
    find(owner: number, key: string, now: number): OnceRecord | undefined;
    add(effect: OnceEffect, place: KeyPlace, at: Pick<OnceRecord, "seq" | "taskId">): void;
  };
  readonly features: {
    /** `task` is absent if the item creates it. */
    refusalOf(task: Task | undefined, effects: readonly FeatureEffect[]): "changed" | "full" | undefined;
    apply(task: Task, effect: FeatureEffect): void;
  };
  /** The audit of operators. */
  readonly acts: { add(act: AuditedAct): void };
  /** `null` deletes a value. */
  readonly values: { set(table: ValueTable, id: number, value: string | null): void };
  /** Whether no row that an item names exists, except its context. If so, the store can skip the other queries. */
  isNew(item: TaskAppend): boolean;
  /** `foreign` means the task of another owner, which is invisible here, except that its id cannot be reused. */
  find(key: TaskKey): Task | "foreign" | undefined;
  ownerId(owner: Owner): number | undefined;
  /** Creates a task without records. */
  create(head: TaskHead): Task;
  /** A context, which is created if it is missing. */
  context(key: ContextKey): FoundContext;
  changed(task: Task, before: TaskHead | undefined): void;
  /** Adds a record of a task. Only the first record has a `base`. */
  addRecord(task: Task, seq: number, read: ReadRecord, base: string | undefined): void;
  addReply(context: number, effect: ContextMessageEffect): void;
  /** Notes when a conversation was last used. */
  touch(context: FoundContext, time: number): void;
}

/** Applies the items in order. Each item sees the changes of earlier items. */
export function applyAll<Task extends KnownTask>(
  changes: Changes<Task>,
  items: readonly ReadAppend[],
): readonly AppendOutcome[] {
  return items.map((item) => ("item" in item ? appendTask(changes, item) : appendContext(changes, item)));
}

function appendTask<Task extends KnownTask>(changes: Changes<Task>, read: ReadItem): AppendOutcome {
  const { item } = read;
  const { effects = [] } = item;
  const isNew = changes.isNew(item);
  const found = isNew ? undefined : changes.find(item.task);
  const own = found === "foreign" ? undefined : found;
  const known = own && { head: own.head };
  const once = isNew ? undefined : duplicate(changes, item.task, effects);
  if (once !== undefined) return { ok: false, reason: "duplicate", once, ...known };
  if (found === "foreign" && item.create !== undefined) return { ok: false, reason: "exists" };
  const head = decide(read, own?.head);
  if (typeof head === "string") return { ok: false, reason: head, ...known };
  const reason = changes.features.refusalOf(own, read.features);
  if (reason !== undefined) return { ok: false, reason, ...known };
  if (head.seq > maxSeq) throw new RangeError(`A task can have at most ${maxSeq} records`);

  const before = own?.head;
  const task = own ?? changes.create(head);
  Object.assign(task, statusOf(read, head, task));
  task.head = head;
  changes.changed(task, before);
  let seq = head.seq - read.records.length;
  for (const record of read.records) {
    seq += 1;
    changes.addRecord(task, seq, record, seq === 1 ? baseOf(record.record) : undefined);
  }
  applyToTask(changes, task, effects);
  return { ok: true, seq: head.seq, fence: head.fence };
}

/** Applies effects to a task. Leases and runs are part of the head. */
function applyToTask<Task extends KnownTask>(changes: Changes<Task>, task: Task, effects: readonly TaskEffect[]): void {
  const { number, owner, context } = task.row;
  for (const effect of effects) {
    if (effect.effect === "checkpoint") changes.values.set("checkpoints", number, effect.value);
    else if (effect.effect === "taskState") changes.values.set("task_states", number, effect.value);
    else if (effect.effect === "contextState") changes.values.set("context_states", context, effect.value);
    else if (effect.effect === "feature") changes.features.apply(task, effect);
    else if (effect.effect === "act") changes.acts.add(effect);
    else if (effect.effect === "once") {
      const at = { seq: task.head.seq, taskId: task.head.task.taskId };
      changes.keys.add(effect, { owner, task: number, context: null }, at);
    }
  }
}

function appendContext<Task extends KnownTask>(
  changes: Changes<Task>,
  { context: key, effects }: ContextAppend,
): AppendOutcome {
  const once = duplicate(changes, key, effects);
  if (once !== undefined) return { ok: false, reason: "duplicate", once };
  const context = changes.context(key);
  for (const effect of effects) {
    if (effect.effect === "contextState") changes.values.set("context_states", context.id, effect.value);
    else if (effect.effect === "contextMessage") {
      changes.addReply(context.id, effect);
      changes.touch(context, effect.time);
    } else {
      changes.keys.add(effect, { owner: context.owner, task: null, context: context.id }, { seq: 0 });
      changes.touch(context, Math.ceil(effect.now));
    }
  }
  return { ok: true, seq: 0, fence: 0 };
}

/** The existing record of an idempotency key in the effects. */
function duplicate<Task extends KnownTask>(
  changes: Changes<Task>,
  key: Owner,
  effects: Effects,
): OnceRecord | undefined {
  for (const effect of effects) {
    if (effect.effect !== "once") continue;
    const owner = changes.ownerId(key);
    const known = owner === undefined ? undefined : changes.keys.find(owner, effect.key, effect.now);
    if (known !== undefined) return known;
  }
  return undefined;
}
