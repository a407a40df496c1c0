import { createHash } from "node:crypto";
import type { TaskState } from "@parley/a2a/model";
import type { LogRecord } from "@parley/a2a/internal/model/index";

/*
 * What a run of chaos writes down: what was done to the cluster, and what its clients, its receivers of webhooks, its service with
 * side effects and its nodes saw. It is a file with one JSON value a line. `check.ts` judges it, with the logs of the tasks.
 */

/** When it happened, in milliseconds since the Unix epoch. All processes are on one machine. */
interface Moment {
  readonly at: number;
}

/** An injected fault. */
export interface Fault extends Moment {
  readonly type: "fault";
  readonly what: string;
  /** The node, from 0. Absent: all of them, or the database. */
  readonly node?: number;
  /** How long it lasts, in milliseconds. */
  readonly lasts: number;
}

/** A message that the cluster has accepted, by its answer or the first event of its stream. */
export interface Acked extends Moment {
  readonly type: "acked";
  readonly messageId: string;
  readonly taskId: string;
}

/** An event of a stream, as its reader got it. */
export interface Read extends Moment {
  readonly type: "read";
  /** The stream: one number over all of its connections. */
  readonly stream: number;
  readonly taskId: string;
  /** Its place in the log. Absent if the task was over before the stream began: the event is the task. */
  readonly seq?: number;
  /** Of the event. */
  readonly digest: string;
  /** Whether it is the task, which replaces everything before it. */
  readonly whole: boolean;
  /** Set for a reader who has not sent the message: the node that it reads from is seldom the one that works on the task. */
  readonly joined?: true;
}

/** The end of a stream. */
export interface Closed extends Moment {
  readonly type: "closed";
  readonly stream: number;
  readonly taskId: string;
  /** Why it ended early. */
  readonly error?: string;
}

/** A task that a call has answered with, at the end of the task. */
export interface Answered extends Moment {
  readonly type: "answered";
  readonly taskId: string;
  /** Of the task. */
  readonly digest: string;
}

/** A cancel that was acknowledged. */
export interface Canceled extends Moment {
  readonly type: "canceled";
  readonly taskId: string;
  readonly state: TaskState;
}

/** A call of the service with side effects, from the function of a step. */
export interface Effect extends Moment {
  readonly type: "effect";
  readonly taskId: string;
  /** The key of the step: the same in each attempt. */
  readonly key: string;
  readonly attempt: number;
  /** Whether the step learned that an earlier call may have had its effect. */
  readonly uncertain: boolean;
  /** The number of the call. The step returns it. */
  readonly call: number;
}

/** A request to a webhook. */
export interface Delivered extends Moment {
  readonly type: "delivered";
  readonly config: string;
  readonly taskId: string;
  /** The number of the delivery, of those of its config. */
  readonly sequence: number;
  /** Of the event. */
  readonly digest: string;
  /** Whether the receiver took it. */
  readonly taken: boolean;
}

/** What a node has stored of a run, under its fence. It may be missing if the node was killed just then. */
export interface Stored extends Moment {
  readonly type: "stored";
  /** The process. */
  readonly node: string;
  readonly taskId: string;
  /** The fence that the node held. */
  readonly fence: number;
  /** The place of the last record, and how many there are. */
  readonly seq: number;
  readonly records: number;
}

/** A wake-up, and what the log had when it came. */
export interface Told extends Moment {
  readonly type: "told";
  readonly taskId: string;
  /** The place of the last record. */
  readonly seq: number;
}

/** A node that ended, or logged an unexpected error. */
export interface Trouble extends Moment {
  readonly type: "trouble";
  readonly what: string;
  readonly taskId?: string;
}

/** What operators and the dashboard were told at one node while nothing moved, and what clients saw of the tasks that were not over. */
export interface Counted extends Moment {
  readonly type: "counted";
  /** The process. */
  readonly node: string;
  /** Tasks by agent and state. */
  readonly agents: Readonly<Record<string, Readonly<Partial<Record<TaskState, number>>>>>;
  readonly paused: readonly string[];
  /** Tasks in the queue, runs, and tasks on all pages of the list. */
  readonly queued: number;
  readonly runs: number;
  readonly listed: number;
  /** Gauges of the dashboard, by the names of their metrics. */
  readonly gauges: Readonly<Record<string, number>>;
  /** As clients saw them. `waits`: for a word. */
  readonly open: readonly {
    readonly taskId: string;
    readonly agent: string;
    readonly state: TaskState;
    readonly waits: boolean;
  }[];
}

/** The counters of a node at the end. */
export interface Metered extends Moment {
  readonly type: "metered";
  /** The last process. */
  readonly node: string;
  /** Records that it has stored, and turns that it has run. */
  readonly records: number;
  readonly turns: number;
  /** Of all processes of the node, as far as they were read before they ended. */
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

/** A task as the store has it at the end. */
export interface TaskLog {
  readonly taskId: string;
  readonly records: readonly LogRecord[];
  /** Whether it has a run or a holder that should be gone. */
  readonly isHeld: boolean;
  /** Whether its agent continues after a crash. */
  readonly isResumable: boolean;
}

/** A short name of a JSON value, whatever the order of its members. */
export function digest(value: unknown): string {
  return createHash("sha1").update(canonical(value)).digest("base64").slice(0, 12);
}

function canonical(value: unknown = null): string {
  return JSON.stringify(value, (_name, each: unknown) => {
    if (typeof each !== "object" || each === null || Array.isArray(each)) return each;
    return Object.fromEntries(Object.entries(each).toSorted(([one], [other]) => (one < other ? -1 : 1)));
  });
}
