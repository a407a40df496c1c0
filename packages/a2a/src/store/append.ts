import type { NewRecord } from "../model/index.ts";
import type { ContextKey, Run, TaskHead, TaskKey } from "./task-head.ts";

/** What a store is told to keep, and what it answers. */

/** One change: of a task, or of a context where no task is concerned. */
export type AppendItem = TaskAppend | ContextAppend;

/** Records for the log of a task, and what is stored with them. All of it is stored, or nothing. */
export interface TaskAppend {
  readonly task: TaskKey;
  /**
   * The task is new and belongs to this context. Its first record is of kind `task`, without artifacts. Fails as `exists`
   * where the agent has a task of that id; an item without `create` fails as `missing` where its owner has no such task.
   */
  readonly create?: { readonly contextId: string };
  /** `seq` that the last record of the task must have. Fails as `stale`. */
  readonly expect?: number;
  /** Fence that the task must have. Fails as `fenced`. */
  readonly fence?: number;
  /**
   * May be empty (a heartbeat). The store takes state, status time, counters and generation from them. Records after a
   * terminal status fail as `terminal`, in whatever item.
   */
  readonly records: readonly NewRecord[];
  /** Bytes that the task may have with the records (`TaskHead.bytes`). Fails as `full`; without records never. */
  readonly maxBytes?: number;
  readonly effects?: readonly TaskEffect[];
}

/** What is stored for a context alone: a direct reply, a state. */
export interface ContextAppend {
  readonly context: ContextKey;
  readonly effects: readonly ContextEffect[];
}

/** What can be stored with a change of a task. A new feature adds an effect here, and no method to the store. */
export type TaskEffect = LeaseEffect | RunEffect | CheckpointEffect | OnceEffect | ContextStateEffect;
/** What can be stored for a context. */
export type ContextEffect = ContextStateEffect | ContextMessageEffect | OnceEffect;

/**
 * Who executes a task.
 *
 * - `acquire` takes a lease that is free or has run out at `now` (`until` ≤ `now`), else fails as `leased`. It raises the
 *   fence by one.
 * - `renew` and `release` go with `fence`. Renewing a lease that was given back fails as `fenced`.
 * - `revoke` takes the lease from its holder and raises the fence.
 *
 * Times are milliseconds since the Unix epoch.
 */
export type LeaseEffect =
  | {
      readonly effect: "lease";
      readonly op: "acquire";
      readonly holder: string;
      readonly now: number;
      readonly until: number;
    }
  | { readonly effect: "lease"; readonly op: "renew"; readonly until: number }
  | { readonly effect: "lease"; readonly op: "release" }
  | { readonly effect: "lease"; readonly op: "revoke" };

/** The turn that is being executed, or `null`: none. A run without a live lease is `claimable`. */
export interface RunEffect {
  readonly effect: "run";
  readonly run: Run | null;
}

/** Where a resumed run goes on from: JSON text, or `null` to forget it. */
export interface CheckpointEffect {
  readonly effect: "checkpoint";
  readonly value: string | null;
}

/**
 * An idempotency key, unique within its owner: the message that it names was taken in. Fails as `duplicate` where the key is
 * stored and has not run out at `now`. It is deleted with its task, or with its context.
 */
export interface OnceEffect {
  readonly effect: "once";
  readonly key: string;
  /** Of the content under the key, to tell a retry from another use. */
  readonly hash: string;
  /** Milliseconds since the Unix epoch. */
  readonly now: number;
  /** When it runs out, in milliseconds since the Unix epoch; absent: with its task, or its context. */
  readonly until?: number;
  /** Of a direct reply: the answer, as JSON text of a Message. */
  readonly answer?: string;
}

/** The small value that the turns of a context share: JSON text, or `null` to forget it. */
export interface ContextStateEffect {
  readonly effect: "contextState";
  readonly value: string | null;
}

/** A message of a conversation that belongs to no task: a direct reply, or what it answers. */
export interface ContextMessageEffect {
  readonly effect: "contextMessage";
  /** JSON text of a Message. */
  readonly json: string;
  /** Milliseconds since the Unix epoch. */
  readonly time: number;
}

/** What became of an item: stored, or why nothing of it is. */
export type AppendOutcome =
  | {
      readonly ok: true;
      /** `seq` of the task's last record now, 0 for a context. The records of the item are the last ones up to it. */
      readonly seq: number;
      /** The fence now. */
      readonly fence: number;
    }
  | {
      readonly ok: false;
      readonly reason: "missing" | "exists" | "stale" | "fenced" | "leased" | "terminal" | "full" | "duplicate";
      /** The task as it stands, where it exists and belongs to the item's owner. */
      readonly head?: TaskHead;
      /** For `duplicate`: what is stored under the key. */
      readonly once?: OnceRecord;
    };

/** What is stored under an idempotency key. */
export interface OnceRecord {
  readonly key: string;
  /** Of the content under the key. */
  readonly hash: string;
  /** The task that the message made or went to. */
  readonly taskId?: string;
  /** `seq` of the last record that was stored with the key. */
  readonly seq: number;
  /** Of a direct reply: the answer, as JSON text of a Message. */
  readonly answer?: string;
}
