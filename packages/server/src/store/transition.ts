import { utf8Length } from "@parley/a2a/internal/base/index";
import { membersOf, wellFormed } from "@parley/a2a/internal/base/json-text";
import { countsInGeneration, isHistory, isTerminal, type NewRecord } from "@parley/a2a/internal/model/index";
import { messagesOfStatus, messagesOfTask } from "./assemble.ts";
import { checkAct } from "./operators.ts";
import type {
  AppendItem,
  AppendOutcome,
  ContextAppend,
  FeatureEffect,
  FeatureState,
  LeaseEffect,
  StoredRun,
  TaskAppend,
  TaskEffect,
  TaskHead,
} from "./port.ts";

/* The rules for items of `append`, shared by all stores: what an item may contain, and how it changes the head of its task. */

/** Why an item fails. */
export type Refusal = Extract<AppendOutcome, { readonly ok: false }>["reason"];

/** A record with the facts that a store needs, so that its JSON is parsed only once. */
export interface ReadRecord {
  /** The record. */
  readonly record: NewRecord;
  /** Whether the record has messages of the task's history. */
  readonly inHistory: boolean;
  /** Whether the record adds to the task's metadata. */
  readonly hasMetadata: boolean;
  /** How many bytes the record adds to `TaskHead.bytes`. */
  readonly bytes: number;
}

/** The size of a record in bytes, as all limits of a log count it. */
export function recordBytes({ json, call }: Pick<NewRecord, "json" | "call">): number {
  return utf8Length(json) + (call === undefined ? 0 : utf8Length(call));
}

/** An item whose records were read. */
export interface ReadItem {
  /** The item. */
  readonly item: TaskAppend;
  /** Its records. */
  readonly records: readonly ReadRecord[];
  /** Its effects on rows of features. */
  readonly features: readonly FeatureEffect[];
}

const noFeatures: readonly FeatureEffect[] = [];

/** Reads an item before anything is stored. Throws a `TypeError` for a malformed item. */
export function readItem(item: TaskAppend): ReadItem {
  const first = item.records[0];
  if (item.create !== undefined && first?.kind !== "task") {
    throw new TypeError("The first record of a new task must be of kind task");
  }
  let features: FeatureEffect[] | undefined;
  for (const effect of item.effects ?? []) {
    checkEffect(effect, item);
    if (effect.effect === "feature") (features ??= []).push(effect);
  }
  const records = item.records.map((record, index) => {
    if (record.kind === "task" && (index > 0 || item.create === undefined)) {
      throw new TypeError("A record of kind task must be the first of its log");
    }
    return readRecord(record);
  });
  return { item, records, features: features ?? noFeatures };
}

/**
 * Reads the items of an append before anything is stored. Not every database stores fractions, so times are rounded to whole milliseconds, up,
 * so that nothing expires too early. Throws a `TypeError` for a malformed item.
 */
export function readItems(items: readonly AppendItem[]): readonly (ReadItem | ContextAppend)[] {
  return items.map((item) => {
    if (!("task" in item)) {
      const effects = wholeTimes(item.effects);
      return effects === item.effects ? item : { ...item, effects };
    }
    const records = wholeTimes(item.records);
    const effects = item.effects && wholeTimes(item.effects);
    if (records === item.records && effects === item.effects) return readItem(item);
    return readItem({ ...item, records, ...(effects !== undefined && { effects }) });
  });
}

/** Members with times that are rounded. `now` is not rounded. */
const times = ["time", "until"] as const;

type Times = { readonly [Name in (typeof times)[number]]?: unknown };

/** Rounds the times of a list. Returns the same list if all times are whole, as they nearly always are. */
function wholeTimes<T extends object>(list: readonly T[]): readonly T[] {
  return list.some(hasFraction) ? list.map(rounded) : list;
}

/** Not a closure, because it runs for each record (budget "bytes of chunk"). */
function hasFraction({ time, until }: Times): boolean {
  return isFraction(time) || isFraction(until);
}

function isFraction(time: unknown): time is number {
  return Number.isFinite(time) && !Number.isInteger(time);
}

function rounded<T extends object>(value: T): T {
  const copy: T & { -readonly [Name in keyof Times]: unknown } = { ...value };
  for (const name of times) if (isFraction(copy[name])) copy[name] = Math.ceil(copy[name]);
  return copy;
}

const knownEffects: readonly string[] = [
  "lease",
  "run",
  "checkpoint",
  "taskState",
  "once",
  "contextState",
  "feature",
  "act",
] satisfies readonly TaskEffect["effect"][];

function checkEffect(effect: TaskEffect, { fence }: TaskAppend): void {
  // Ignoring an unknown effect would lose it silently.
  if (!knownEffects.includes(effect.effect)) {
    throw new TypeError(`Unknown effect ${JSON.stringify(effect.effect)}`);
  }
  if (effect.effect === "feature") checkFeature(effect);
  if (effect.effect === "act") checkAct(effect);
  if (effect.effect === "lease" && (effect.op === "renew" || effect.op === "release") && fence === undefined) {
    throw new TypeError("fence is required to renew or release a lease");
  }
}

function readRecord(record: NewRecord): ReadRecord {
  const bytes = recordBytes(record);
  const mayBeHistory = isHistory(record);
  switch (record.kind) {
    case "message":
    case "artifactUpdate":
      return { record, inHistory: mayBeHistory, hasMetadata: false, bytes };
    case "task": {
      const task = membersOf(record.json);
      if (record.state === undefined) throw new TypeError("A record of kind task must have a state");
      if (task.has("artifacts")) throw new TypeError("A new task must not have artifacts");
      return { record, inHistory: mayBeHistory && messagesOfTask(task).length > 0, hasMetadata: false, bytes };
    }
    case "statusUpdate": {
      if (record.state === undefined) throw new TypeError("A record of kind statusUpdate must have a state");
      const update = membersOf(record.json);
      const inHistory = mayBeHistory && messagesOfStatus(update.get("status")).length > 0;
      return { record, inHistory, hasMetadata: update.has("metadata"), bytes };
    }
  }
}

/** The head of a task after an item, or why the item fails. Before this, the store checks idempotency keys, and after this, features. */
export function decide({ item, records }: ReadItem, head: TaskHead | undefined): TaskHead | Refusal {
  if (item.create !== undefined) {
    if (head !== undefined) return "exists";
  } else if (head === undefined) return "missing";

  const before = head ?? newHead(item);
  if (item.expect !== undefined && item.expect !== before.seq) return "stale";
  if (item.fence !== undefined && item.fence !== before.fence) return "fenced";
  if (item.run !== undefined && textOfRun(item.run) !== textOfRun(before.run)) return "stale";

  let { state, statusTime, seq, generation, bytes, run } = before;
  let over = head !== undefined && isTerminal(state);
  for (const { record, bytes: added } of records) {
    if (over) return "terminal";
    seq += 1;
    bytes += added;
    if (countsInGeneration(record.kind)) generation += 1;
    if (record.kind !== "task" && record.kind !== "statusUpdate") continue;
    state = record.state ?? state;
    statusTime = record.time;
    over = isTerminal(state);
  }
  if (records.length > 0 && item.maxBytes !== undefined && bytes > item.maxBytes) return "full";
  let lease: Lease = before;
  for (const effect of item.effects ?? []) {
    if (effect.effect === "run") run = effect.run === null ? undefined : runOf(effect.run);
    if (effect.effect !== "lease") continue;
    const changed = leaseAfter(lease, effect);
    if (typeof changed === "string") return changed;
    lease = changed;
  }
  const { task, contextId, firstSeq, checkpoint } = before;
  const { fence, holder, leaseUntil } = lease;
  return Object.freeze({
    task,
    contextId,
    state,
    statusTime,
    seq,
    firstSeq,
    generation,
    bytes,
    fence,
    ...(holder !== undefined && { holder }),
    ...(leaseUntil !== undefined && { leaseUntil }),
    ...(run !== undefined && { run }),
    ...(checkpoint !== undefined && { checkpoint }),
  });
}

function runOf({ turn, attempt, input, deaths = 0, outlived = 0, alone, suspended }: StoredRun): StoredRun {
  return Object.freeze({
    turn,
    attempt,
    input,
    ...(deaths > 0 && { deaths }),
    ...(outlived > 0 && { outlived }),
    ...(alone === true && { alone: true as const }),
    ...(suspended === true && { suspended: true as const }),
  });
}

function textOfRun(run: StoredRun | null | undefined): string {
  return run ? JSON.stringify(runOf(run)) : "";
}

/** A task before its first record. */
function newHead({ task: { agent, owner, taskId }, create }: TaskAppend): TaskHead {
  return {
    // Not a spread: on Node 20, each frozen copy by spread gets its own hidden class of 180 bytes (row `task-memory` of the benchmarks).
    task: Object.freeze({ agent, owner, taskId }),
    contextId: create?.contextId ?? "",
    state: "TASK_STATE_SUBMITTED",
    statusTime: 0,
    seq: 0,
    firstSeq: 1,
    generation: 0,
    bytes: 0,
    fence: 0,
  };
}

type Lease = Pick<TaskHead, "fence" | "holder" | "leaseUntil">;

function leaseAfter({ fence, holder, leaseUntil }: Lease, effect: LeaseEffect): Lease | Refusal {
  switch (effect.op) {
    case "acquire":
      if (leaseUntil !== undefined && leaseUntil > effect.now) return "leased";
      return { fence: fence + 1, holder: effect.holder, leaseUntil: effect.until };
    case "renew":
      // A lease without a holder was released, so the caller no longer has it.
      return holder === undefined ? "fenced" : { fence, holder, leaseUntil: effect.until };
    case "release":
      return { fence };
    case "revoke":
      return { fence: fence + 1 };
  }
}

/* The rules for the rows of features, shared by all stores. */

/** Rows of open delegations. */
export const delegationFeature = "delegation";
/** Rows of finished delegations. */
export const delegatedFeature = "delegation.over";

/** Rows with the results of steps and waits, and with the names of steps that have begun. */
export const stepFeature = "step";
/** Rows of open waits, and of events that no wait has consumed. A row that may let its task continue is due. */
export const waitFeature = "wait";

/** Rows that tell operators which process took over a lost run. Each has a `StoredTakeover`. */
export const takeoverFeature = "takeover";

/** The row with the time when a task was suspended, in milliseconds since the Unix epoch. */
export const suspendedFeature = "suspended";

/** The row of a task that waits for a process with room for its run. The row's `due` is the task's position in the queue. */
export const queueFeature = "queue";

/** The row of a task that was lost several times, with the `seq` of the last event that a run has repeated. */
export const replayFeature = "replay";

/** The effect that deletes a row. */
export function deleteRow(feature: string, key: string): FeatureEffect {
  return { effect: "feature", op: "delete", feature, key };
}

/** The state of a row, for comparisons. */
export function stateOf({ value, due }: FeatureState): FeatureState {
  return due === undefined ? { value } : { value, due };
}

/** Size limits for the rows of features. All rows of a task together fit into one page (`defaultPageBytes`). */
export interface FeatureBounds {
  /** Maximum bytes of a feature's name. */
  readonly name: number;
  /** Maximum bytes of a key. */
  readonly key: number;
  /** Maximum bytes of a value. */
  readonly value: number;
  /** Maximum rows of a task, of all features together. */
  readonly rows: number;
}

/** Limits of rows: names of 256 bytes, keys of 512, values of 32 KiB, 256 rows. */
export const featureBounds: FeatureBounds = { name: 256, key: 512, value: 32 << 10, rows: 256 };

/** The rows of a task before an item. */
export interface FeatureLookup {
  /** The row under a key. */
  find(feature: string, key: string): FeatureState | undefined;
  /** How many rows the task has, of all features. */
  count(): number;
}

/** Checks an effect before anything is stored. Throws a `TypeError` for a malformed effect. */
export function checkFeature(effect: FeatureEffect): void {
  checkText("The name of a feature", effect.feature, featureBounds.name);
  // Ignoring an unknown change would lose it silently.
  if (!["set", "delete", "wake"].includes(effect.op)) {
    throw new TypeError(`Unknown change of a feature's row: ${JSON.stringify(effect.op)}`);
  }
  if (effect.op !== "wake") checkText("The key of a feature", effect.key, featureBounds.key);
  if (effect.op === "set") checkValue(effect.value);
  if (effect.op === "wake" || (effect.op === "set" && effect.due !== undefined)) checkDue(effect.due);
}

function checkDue(due: number | undefined): void {
  if (!Number.isSafeInteger(due)) throw new TypeError("due of a feature must be in whole milliseconds");
}

/** Databases reject or change text with NUL or lone surrogates. The whole transaction would then fail, with the items of other tasks. */
function checkValue(value: string): void {
  if (typeof value === "string" && utf8Length(value) > featureBounds.value) {
    throw new TypeError(`The value of a feature must not take more than ${featureBounds.value} bytes`);
  }
  if (typeof value !== "string" || wellFormed(value) !== value || !isJson(value)) {
    throw new TypeError("The value of a feature must be JSON text, as JSON.stringify() returns it");
  }
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

function checkText(what: string, text: string, most: number): void {
  if (typeof text !== "string") throw new TypeError(`${what} must be a string`);
  const bytes = utf8Length(text);
  if (bytes === 0 || bytes > most) throw new TypeError(`${what} must take 1 to ${most} bytes; got ${bytes}`);
}

/** Why the effects of an item fail. `undefined`: they do not fail. */
export function refuseFeatures(effects: readonly FeatureEffect[], rows: FeatureLookup): "changed" | "full" | undefined {
  /** Whether a row exists after the effects so far. */
  const present = new Map<string, boolean>();
  let added = 0;
  for (const effect of effects) {
    if (effect.op === "wake") continue;
    const { feature, key } = effect;
    const before = rows.find(feature, key);
    if (effect.if !== undefined && !isSame(before, effect.if)) return "changed";
    const name = JSON.stringify([feature, key]);
    const was = present.get(name) ?? before !== undefined;
    const is = effect.op === "set";
    present.set(name, is);
    added += Number(is) - Number(was);
  }
  return added > 0 && rows.count() + added > featureBounds.rows ? "full" : undefined;
}

function isSame(row: FeatureState | undefined, wanted: FeatureState | null): boolean {
  return wanted === null ? row === undefined : row?.value === wanted.value && row.due === wanted.due;
}
