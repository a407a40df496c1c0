import type { TaskState, StreamResponse } from "./types.ts";

/* The states of a task as data (A2A 1.0 §4.1.3), and the records of its log. */

/** The meaning of a state for a waiting client: the task continues, needs an answer, or has ended. */
export type StateKind = "active" | "interrupted" | "terminal";

/** The kind of each state. */
export const stateKinds: Readonly<Record<TaskState, StateKind>> = {
  TASK_STATE_SUBMITTED: "active",
  TASK_STATE_WORKING: "active",
  TASK_STATE_INPUT_REQUIRED: "interrupted",
  TASK_STATE_AUTH_REQUIRED: "interrupted",
  TASK_STATE_COMPLETED: "terminal",
  TASK_STATE_FAILED: "terminal",
  TASK_STATE_CANCELED: "terminal",
  TASK_STATE_REJECTED: "terminal",
};

/** Every state. */
export const taskStates: readonly TaskState[] = Object.keys(stateKinds) as TaskState[];

/** Whether a value is the name of a state. */
export function isTaskState(value: unknown): value is TaskState {
  return typeof value === "string" && Object.hasOwn(stateKinds, value);
}

/** Whether a task in this state is over: COMPLETED, FAILED, CANCELED or REJECTED. */
export function isTerminal(state: TaskState): boolean {
  return stateKinds[state] === "terminal";
}

/** Whether a task in this state waits for its caller: INPUT_REQUIRED or AUTH_REQUIRED. */
export function isInterrupted(state: TaskState): boolean {
  return stateKinds[state] === "interrupted";
}

/**
 * Whether a task may change state: never out of a terminal state (A2A 1.0 §3.1.1), nor back to SUBMITTED, which means that no
 * work has begun.
 */
export function mayMove(from: TaskState, to: TaskState): boolean {
  return stateKinds[from] !== "terminal" && (to !== "TASK_STATE_SUBMITTED" || from === "TASK_STATE_SUBMITTED");
}

/** The log of a task: one record per change, numbered from 1. The task that a client reads is a fold of it (`reduce.ts`). */

/**
 * The event of a record. `task`, always first: the task as created, with the first user message in `history`. `message`: a
 * later message of the user. The other two are the events of streams (A2A 1.0 §4.2).
 */
export type LogEvent = StreamResponse;

/** The kind of a record's event: the name of the single member of its `LogEvent`. */
export type RecordKind = "task" | "message" | "statusUpdate" | "artifactUpdate";

/** The author of a record: the caller, the agent's code, the engine (failures, cancels), or an agent that the agent delegated to. */
export type Actor = "user" | "agent" | "system" | "delegate";

/** A record before the store has numbered it. */
export interface NewRecord {
  /** The kind of the event. */
  readonly kind: RecordKind;
  /** The event as A2A 1.0 JSON text, without the wrapper member. It is serialized once and never again. */
  readonly json: string;
  /** When, in milliseconds since the Unix epoch. For a status this is also its `timestamp`. */
  readonly time: number;
  /** The author of the record. */
  readonly actor: Actor;
  /** The turn that wrote it, from 1. A user message that arrives during a turn belongs to that turn. */
  readonly turn: number;
  /** Number of the attempt of that turn, from 1. A turn that resumes after a crash has a second attempt. */
  readonly attempt: number;
  /** Whether a progress message belongs to the history. Messages of interrupted and terminal states always do. */
  readonly keep?: boolean;
  /** The state that the record sets. Always present for the kinds `task` and `statusUpdate`. */
  readonly state?: TaskState;
  /** For the kinds `task` and `message`: data of the call that the answering turn needs, as JSON text. */
  readonly call?: string;
  /** URIs of the extensions that were active in the turn. */
  readonly extensions?: readonly string[];
  /** W3C `traceparent` of the call that caused the record. */
  readonly trace?: string;
}

/** A record in the log of its task. */
export interface LogRecord extends NewRecord {
  /** Number in the log of the task, from 1, without gaps: cursor of readers, event id of streams, and expected value of an append. */
  readonly seq: number;
}

/** A numbered record, frozen. A class, because an instance takes 87 bytes, and an object literal with a spread 120 to 410 (row `task-memory`). */
class PlacedRecord implements LogRecord {
  readonly seq: number;
  readonly kind: RecordKind;
  readonly json: string;
  readonly time: number;
  readonly actor: Actor;
  readonly turn: number;
  readonly attempt: number;
  declare readonly keep?: boolean;
  declare readonly state?: TaskState;
  declare readonly call?: string;
  declare readonly extensions?: readonly string[];
  declare readonly trace?: string;

  constructor(record: NewRecord, seq: number) {
    this.seq = seq;
    this.kind = record.kind;
    this.json = record.json;
    this.time = record.time;
    this.actor = record.actor;
    this.turn = record.turn;
    this.attempt = record.attempt;
    if (record.keep !== undefined) this.keep = record.keep;
    if (record.state !== undefined) this.state = record.state;
    if (record.call !== undefined) this.call = record.call;
    if (record.extensions !== undefined) this.extensions = Object.freeze([...record.extensions]);
    if (record.trace !== undefined) this.trace = record.trace;
    Object.freeze(this);
  }
}

/** A frozen copy of a record, with its number. */
export function placed(record: NewRecord, seq: number): LogRecord {
  return new PlacedRecord(record, seq);
}

/** The event of a record. Each call parses the JSON again: keep the result if you need it twice. */
export function eventOf(record: NewRecord): LogEvent {
  return { [record.kind]: JSON.parse(record.json) as unknown } as unknown as LogEvent;
}

/**
 * Whether the messages of a record belong to the history of its task. The history holds, in the order of the log, the
 * messages of the user, the messages of interrupted and terminal statuses, and progress messages that the agent asked to
 * keep. No other rule applies.
 *
 * A message enters the history together with its status, not when the next status replaces it, so the history of a
 * finished task is complete (A2A 1.0 §3.7 leaves the choice to the agent). The current status message can therefore be in
 * `status.message` and in `history`, under one `messageId`. Within `history` no message appears twice.
 */
export function isHistory({ kind, state, keep }: Pick<NewRecord, "kind" | "state" | "keep">): boolean {
  switch (kind) {
    case "task":
    case "message":
      return true;
    case "artifactUpdate":
      return false;
    case "statusUpdate":
      return keep === true || (state !== undefined && stateKinds[state] !== "active");
  }
}
