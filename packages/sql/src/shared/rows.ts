import {
  escaped as encodeName,
  unescaped as decodeName,
  wellFormed as encodeJson,
} from "@parley/a2a/internal/base/json-text";
import type { TaskState, Actor, LogRecord, NewRecord, RecordKind } from "@parley/a2a/internal/model/index";
import type {
  FeatureRow,
  OnceRecord,
  Owner,
  ReadRecord,
  StoredEvent,
  StoredRun,
  TaskHead,
} from "@parley/server/internal/store/index";
import type { Row, Value } from "./dialect.ts";

export type { Row, Value };

// Rows of tasks and their logs, shared by all databases.

/**
 * Databases store UTF-8 without NUL, but JavaScript strings can have NUL and lone surrogates. So a name is stored as a JSON string without
 * its quotes, which equals most names, and JSON is stored with lone surrogates escaped.
 */
export { decodeName, encodeJson, encodeName };

// Tables store a kind, an actor or a state as its index in these lists, so only append to the lists.

const kinds: readonly RecordKind[] = ["task", "message", "statusUpdate", "artifactUpdate"];
const actors: readonly Actor[] = ["user", "agent", "system", "delegate"];

/** Terminal states have an index of 4 or more. */
export const states: readonly TaskState[] = [
  "TASK_STATE_SUBMITTED",
  "TASK_STATE_WORKING",
  "TASK_STATE_INPUT_REQUIRED",
  "TASK_STATE_AUTH_REQUIRED",
  "TASK_STATE_COMPLETED",
  "TASK_STATE_FAILED",
  "TASK_STATE_CANCELED",
  "TASK_STATE_REJECTED",
];

export function kindNumber(kind: RecordKind): number {
  return kinds.indexOf(kind);
}

export function stateNumber(state: TaskState): number {
  return states.indexOf(state);
}

/** Maximum records of one task. In SQLite, the key of a record is then a safe integer for task numbers below 2^29. */
export const maxSeq: number = 2 ** 24 - 1;

/** The number of a record, from the column `seq`, or from the key of the log of SQLite: `number << 24 | seq`. */
export function seqOf(row: Row, column = 0): number {
  return int(row, column) % 2 ** 24;
}

/** A time to compare with stored times, which are safe integers. A query may contain `Infinity`. */
export function timeLimit(time: number): number {
  return Math.max(Number.MIN_SAFE_INTEGER, Math.min(Number.MAX_SAFE_INTEGER, time));
}

/** A column that must be an integer. */
export function int(row: Row | undefined, column: number): number {
  const value = row?.[column];
  if (typeof value !== "number") throw new TypeError(`column ${column} is not an integer`);
  return value;
}

export function text(row: Row | undefined, column: number): string {
  const value = row?.[column];
  if (typeof value !== "string") throw new TypeError(`column ${column} is not text`);
  return value;
}

/** A column that can be NULL. */
export function optional(row: Row, column: number): Value | undefined {
  return (row[column] as Value) ?? undefined;
}

/** The only column of the only row. */
export function count(row: Row | undefined): number {
  return int(row, 0);
}

export interface TaskRow {
  readonly number: number;
  readonly agent: number;
  readonly owner: number;
  readonly context: number;
  readonly statusSeq: number;
  readonly hasMetadata: boolean;
  readonly head: TaskHead;
}

/** Columns of the task and of its context. */
export const ownColumns: string = `t.number, t.agent, t.owner, t.context, t.status_seq, t.has_metadata, t.id, t.state, t.status_time,
  t.seq, t.first_seq, t.generation, t.fence, t.holder, t.lease_until, t.run_turn, t.run_attempt, t.run_input,
  t.bytes, t.run_deaths, t.run_alone, c.name`;

/** The number of `ownColumns`, which is the index of the first column that a query adds. */
export const ownWidth = 22;

/** Like `ownColumns`, with the names of agent and owner, for callers that do not know them. */
export const taskColumns: string = `${ownColumns}, a.name, o.name`;

/** The number of `taskColumns`, which is the index of the first column that a query adds. */
export const taskWidth = 24;

export function taskRow(row: Row, owner: Owner = ownerOf(row)): TaskRow {
  const holder = optional(row, 13);
  const leaseUntil = optional(row, 14);
  return {
    number: int(row, 0),
    agent: int(row, 1),
    owner: int(row, 2),
    context: int(row, 3),
    statusSeq: int(row, 4),
    hasMetadata: int(row, 5) === 1,
    head: Object.freeze({
      task: Object.freeze({ agent: owner.agent, owner: owner.owner, taskId: decodeName(text(row, 6)) }),
      contextId: decodeName(text(row, 21)),
      state: states[int(row, 7)] ?? "TASK_STATE_FAILED",
      statusTime: int(row, 8),
      seq: int(row, 9),
      firstSeq: int(row, 10),
      generation: int(row, 11),
      bytes: int(row, 18),
      fence: int(row, 12),
      ...(typeof holder === "string" && { holder: decodeName(holder) }),
      ...(typeof leaseUntil === "number" && { leaseUntil }),
      ...(optional(row, 15) !== undefined && { run: runOf(row) }),
    }),
  };
}

function ownerOf(row: Row): Owner {
  return { agent: decodeName(text(row, 22)), owner: decodeName(text(row, 23)) };
}

/**
 * The column `run_alone`: 1 if the run was taken over alone, plus twice the number of process deaths that it has survived. A suspended run
 * has the bitwise complement of that number.
 */
export function trialOf(run: StoredRun | undefined): number | null {
  const trial = 2 * (run?.outlived ?? 0) + (run?.alone === true ? 1 : 0);
  if (run?.suspended === true) return ~trial;
  return trial === 0 ? null : trial;
}

function runOf(row: Row): StoredRun {
  const deaths = optional(row, 19);
  const stored = Number(optional(row, 20) ?? 0);
  const suspended = stored < 0;
  const trial = suspended ? ~stored : stored;
  return Object.freeze({
    turn: int(row, 15),
    attempt: int(row, 16),
    input: int(row, 17),
    ...(typeof deaths === "number" && { deaths }),
    ...(trial > 1 && { outlived: Math.floor(trial / 2) }),
    ...(trial % 2 === 1 && { alone: true as const }),
    ...(suspended && { suspended: true as const }),
  });
}

export const recordColumns = "key, kind, state, time, actor, turn, attempt, extra, json";

/** Members that few records have. */
type Extra = Pick<NewRecord, "keep" | "call" | "extensions" | "trace">;

export function recordRow(row: Row): LogRecord {
  const state = optional(row, 2);
  const extra = optional(row, 7);
  return {
    kind: kinds[int(row, 1)] ?? "task",
    json: text(row, 8),
    time: int(row, 3),
    actor: actors[int(row, 4)] ?? "system",
    turn: int(row, 5),
    attempt: int(row, 6),
    ...(typeof state === "number" && { state: states[state] ?? "TASK_STATE_FAILED" }),
    ...(typeof extra === "string" && (JSON.parse(extra) as Extra)),
    seq: seqOf(row),
  };
}

/** The columns of `recordValues`. */
export const recordValueColumns = [
  "kind",
  "state",
  "time",
  "actor",
  "turn",
  "attempt",
  "has_metadata",
  "extra",
  "json",
] as const;

export function recordValues({ record, hasMetadata }: ReadRecord): readonly Value[] {
  const { keep, call, extensions, trace } = record;
  const bare = keep === undefined && call === undefined && extensions === undefined && trace === undefined;
  return [
    kindNumber(record.kind),
    record.state === undefined ? null : stateNumber(record.state),
    record.time,
    actors.indexOf(record.actor),
    record.turn,
    record.attempt,
    hasMetadata ? 1 : 0,
    bare ? null : JSON.stringify({ keep, call, extensions, trace } satisfies Record<keyof Extra, unknown>),
    encodeJson(record.json),
  ];
}

/** The history record of a kind and a JSON text. */
export function eventOf(kind: number, json: string): StoredEvent {
  return {
    kind: kind === kindNumber("task") ? "task" : kind === kindNumber("message") ? "message" : "statusUpdate",
    json,
  };
}

// The rows of features and of idempotency keys.

/** Reads a feature row. The columns are the key, the value, and the time when the row is due. */
export function featureRow(row: Row): FeatureRow {
  const due = optional(row, 2);
  const value = { key: decodeName(text(row, 0)), value: text(row, 1) };
  return typeof due === "number" ? { ...value, due } : value;
}

/** Reads the record of a key. The columns are the hash, the number of the record, the id of the task, and the answer. */
export function onceRecord(key: string, row: Row): OnceRecord {
  const [taskId, answer] = [optional(row, 2), optional(row, 3)];
  return {
    key,
    hash: decodeName(text(row, 0)),
    seq: int(row, 1),
    ...(typeof taskId === "string" && { taskId: decodeName(taskId) }),
    ...(typeof answer === "string" && { answer }),
  };
}
