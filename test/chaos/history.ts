import { createHash } from "node:crypto";
import type { TaskState } from "@parley/a2a/model";
import type { LogRecord } from "@parley/a2a/internal/model/index";

/*
 * The record of a chaos run: the faults of the cluster, and what was seen by its clients, its webhook receivers, its service with side effects, and
 * its nodes. The file has one JSON value per line. `check.ts` judges the record, together with the logs of the tasks.
 */

/** The time in milliseconds since the Unix epoch. All processes are on one machine. */
interface Moment {
  readonly at: number;
}

/** An injected fault. */
export interface Fault extends Moment {
  readonly type: "fault";
  readonly what: string;
  /** The number of the node, from 0. Absent for all nodes, or for the database. */
  readonly node?: number;
  /** The duration of the fault in milliseconds. */
  readonly lasts: number;
}

/** A message that the cluster has accepted, according to its response or the first event of its stream. */
export interface Acked extends Moment {
  readonly type: "acked";
  readonly messageId: string;
  readonly taskId: string;
}

/** An event of a stream, as its reader received it. */
export interface Read extends Moment {
  readonly type: "read";
  /** The number of the stream. A stream keeps its number over all of its connections. */
  readonly stream: number;
  readonly taskId: string;
  /** The event's position in the log. Absent if the task had ended before the stream began, because the event is then the task. */
  readonly seq?: number;
  /** The digest of the event. */
  readonly digest: string;
  /** Whether the event is the task, which replaces all earlier events. */
  readonly whole: boolean;
  /** Set for a reader that did not send the message, and so rarely reads from the node that works on the task. */
  readonly joined?: true;
}

/** The end of a stream. */
export interface Closed extends Moment {
  readonly type: "closed";
  readonly stream: number;
  readonly taskId: string;
  /** The error, if the stream ended early. */
  readonly error?: string;
}

/** An ended task that a call returned. */
export interface Answered extends Moment {
  readonly type: "answered";
  readonly taskId: string;
  /** The digest of the task. */
  readonly digest: string;
}

/** An acknowledged cancel. */
export interface Canceled extends Moment {
  readonly type: "canceled";
  readonly taskId: string;
  readonly state: TaskState;
}

/** A call to the service with side effects, from the function of a step. */
export interface Effect extends Moment {
  readonly type: "effect";
  readonly taskId: string;
  /** The key of the step. All attempts of the step have the same key. */
  readonly key: string;
  readonly attempt: number;
  /** Whether the step learned that an earlier call may have taken effect. */
  readonly uncertain: boolean;
  /** The number of the call, which is the result of the step. */
  readonly call: number;
}

/** A request to a webhook. */
export interface Delivered extends Moment {
  readonly type: "delivered";
  readonly config: string;
  readonly taskId: string;
  /** The number of the delivery, counted for each config. */
  readonly sequence: number;
  /** The digest of the event. */
  readonly digest: string;
  /** Whether the receiver accepted the delivery. */
  readonly taken: boolean;
}

/** A write of a run, under its fence. The entry may be missing if the node was killed at that moment. */
export interface Stored extends Moment {
  readonly type: "stored";
  /** The name of the process. */
  readonly node: string;
  readonly taskId: string;
  /** The fence that the node held. */
  readonly fence: number;
  /** The position of the last record, and the number of records. */
  readonly seq: number;
  readonly records: number;
}

/** A wake-up, and the state of the log when it arrived. */
export interface Told extends Moment {
  readonly type: "told";
  readonly taskId: string;
  /** The position of the last record. */
  readonly seq: number;
}

/** A node that ended, or logged an unexpected error. */
export interface Trouble extends Moment {
  readonly type: "trouble";
  readonly what: string;
  readonly taskId?: string;
}

/** One node's reports to operators and the dashboard while nothing changed, and the unfinished tasks as clients saw them. */
export interface Counted extends Moment {
  readonly type: "counted";
  /** The name of the process. */
  readonly node: string;
  /** Tasks by agent and state. */
  readonly agents: Readonly<Record<string, Readonly<Partial<Record<TaskState, number>>>>>;
  readonly paused: readonly string[];
  /** The number of queued tasks, of runs, and of tasks on all pages of the list. */
  readonly queued: number;
  readonly runs: number;
  readonly listed: number;
  /** Gauges of the dashboard, by the names of their metrics. */
  readonly gauges: Readonly<Record<string, number>>;
  /** The unfinished tasks as clients saw them. `waits`: whether the task waits for an event. */
  readonly open: readonly {
    readonly taskId: string;
    readonly agent: string;
    readonly state: TaskState;
    readonly waits: boolean;
  }[];
}

/** The final counters of a node. */
export interface Metered extends Moment {
  readonly type: "metered";
  /** The name of the node's last process. */
  readonly node: string;
  /** The number of records that the process has stored, and of turns that it has run. */
  readonly records: number;
  readonly turns: number;
  /** The same for all processes of the node, up to the last reading before each ended. */
  readonly allRecords: number;
  readonly allTakeovers: number;
  readonly allDelivered: number;
}

export type Entry =
  | Fault
  | Acked
  | Read
  | Closed
  | Answered
  | Canceled
  | Effect
  | Delivered
  | Stored
  | Told
  | Trouble
  | Counted
  | Metered;

/** A task in the store at the end of a run. */
export interface TaskLog {
  readonly taskId: string;
  readonly records: readonly LogRecord[];
  /** Whether the task still has a run or a holder. */
  readonly isHeld: boolean;
  /** Whether the task's agent resumes after a crash. */
  readonly isResumable: boolean;
}

/** Returns a short digest of a JSON value, independent of the order of members. */
export function digest(value: unknown): string {
  return createHash("sha1").update(canonical(value)).digest("base64").slice(0, 12);
}

function canonical(value: unknown = null): string {
  return JSON.stringify(value, (_name, each: unknown) => {
    if (typeof each !== "object" || each === null || Array.isArray(each)) return each;
    return Object.fromEntries(Object.entries(each).toSorted(([one], [other]) => (one < other ? -1 : 1)));
  });
}
