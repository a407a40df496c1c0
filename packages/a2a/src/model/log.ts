import type { StreamResponse, TaskState } from "./types.ts";

/**
 * The log of a task (D2): everything that ever happened to it, one record a change, numbered from 1.
 * The task that a client reads is a fold of these records (`reduce`).
 */

/**
 * What a record says. `task` stands first and once: the task as it was made, its first user message in `history`.
 * `message` is a later message of the user's. The other two are what streams show (A2A 1.0 §4.2).
 */
export type LogEvent = StreamResponse;

export type RecordKind = "task" | "message" | "statusUpdate" | "artifactUpdate";

/** Who made a record: the caller, the agent's code, or the engine itself (a failure, a cancel). */
export type Actor = "user" | "agent" | "system";

/** A record before the store has numbered it. */
export interface NewRecord {
  readonly kind: RecordKind;
  /** The event of `kind`, without its wrapper member, as 1.0 JSON text: serialised once, for ever. */
  readonly json: string;
  /** Milliseconds since the Unix epoch; of a status, the time that its `timestamp` says. */
  readonly time: number;
  readonly actor: Actor;
  /** Which turn made it, from 1; a user message that waits belongs to the turn that took it down. */
  readonly turn: number;
  /** Which try of that turn, from 1: a second one is a run resumed after a crash. */
  readonly attempt: number;
  /** Whether a status message is part of the history: that of interrupted and terminal states is, progress only when the agent says so. */
  readonly keep?: boolean;
  /** The state that the record sets: of the kinds `task` and `statusUpdate`, always. */
  readonly state?: TaskState;
  /** Of the kinds `task` and `message`: what the turn that answers it must know of the call, as JSON text the store keeps as it is. */
  readonly call?: string;
  /** URIs that were active in the turn. */
  readonly extensions?: readonly string[];
  /** W3C `traceparent` of the call that caused it. */
  readonly trace?: string;
}

export interface LogRecord extends NewRecord {
  /** Place in the log of its task, from 1, without gaps: the cursor, the SSE id, what compare-and-append compares (D2). */
  readonly seq: number;
}

/**
 * A record in its place, frozen. A class, since a literal with a spread in it keeps what was spread in a second object:
 * stores and streams hold many of these.
 */
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

/** A copy of a record that stands at `seq` in its log. */
export function placed(record: NewRecord, seq: number): LogRecord {
  return new PlacedRecord(record, seq);
}

/** The event of a record, parsed anew at each call: hold on to it rather than ask twice. */
export function eventOf(record: NewRecord): LogEvent {
  return { [record.kind]: JSON.parse(record.json) as unknown } as unknown as LogEvent;
}
