import type { NewRecord, TaskState } from "@parley/a2a/internal/model/index";

/* Stored data: keys, the state of a task, changes and their outcomes. */

/** The owner of stored data. It is part of all keys. */
export interface Owner {
  /** The agent, by its `id`. */
  readonly agent: string;
  /** The caller, as named by the engine's `ownerOf`. */
  readonly owner: string;
}

/** The tasks that a reader may see. For the reader, a task outside of the scope does not exist. */
export interface Scope {
  /** The agent. */
  readonly agent: string;
  /** The caller. Absent: every owner, for operators. */
  readonly owner?: string;
}

/** Key of a task. */
export interface TaskKey extends Owner {
  /** The task. Its id is unique for the agent. */
  readonly taskId: string;
}

/** Key of a conversation. */
export interface ContextKey extends Owner {
  /** The conversation. */
  readonly contextId: string;
}

/** The execution of one turn. */
export interface StoredRun {
  /** Which turn of the task, from 1. */
  readonly turn: number;
  /** Which attempt of that turn, from 1. */
  readonly attempt: number;
  /** The `seq` of the user message that the turn answers. Later user messages wait for the next turns. */
  readonly input: number;
  /** How many consecutive processes took the run over and died before the run stored anything. Absent: none. */
  readonly deaths?: number;
  /** How many `deaths` the run is not blamed for, because it ran for a while after the last of them. Absent: none. */
  readonly outlived?: number;
  /** Set if the run was taken over alone, to find out whether it crashes the process. */
  readonly alone?: true;
  /** Set if the run is suspended: no process takes it over until an operator resumes it. */
  readonly suspended?: true;
}

/** The state of a task, without its messages and artifacts. */
export interface TaskHead {
  /** The task. */
  readonly task: TaskKey;
  /** Its conversation. */
  readonly contextId: string;
  /** Its state. */
  readonly state: TaskState;
  /** Time of its last status, in milliseconds since the Unix epoch. */
  readonly statusTime: number;
  /** The `seq` of its last record. */
  readonly seq: number;
  /** The lowest `seq` that `read` returns. It is more than 1 after the log was compacted. */
  readonly firstSeq: number;
  /** The task's generation (1.1 draft): the number of its creation, status and artifact records. */
  readonly generation: number;
  /** Size of all records in bytes (`recordBytes`). No snapshot and no page of the log is larger. */
  readonly bytes: number;
  /** A number that rises with each new holder. An append with an older number fails as `fenced`. */
  readonly fence: number;
  /** The process that holds the lease, which may have expired. Absent: the lease was never taken, or was released. */
  readonly holder?: string;
  /** When the lease expires, in milliseconds since the Unix epoch. */
  readonly leaseUntil?: number;
  /** The turn that is being executed. */
  readonly run?: StoredRun;
  /** Whether a delegation is open. Only `operators.tasks` returns it. */
  readonly delegates?: true;
  /** The checkpoint as JSON text. Only `head` returns it, because it may be large. */
  readonly checkpoint?: string;
  /** The state of the task as JSON text: the small value that its turns share. Only `head` returns it, like the checkpoint. */
  readonly taskState?: string;
}

/** One change: of a task, or of a conversation. */
export type AppendItem = TaskAppend | ContextAppend;

/** A change of a task. If one of its conditions does not hold, nothing changes. */
export interface TaskAppend {
  /** The task. */
  readonly task: TaskKey;
  /**
   * Creates the task in this conversation. The first record is then of kind `task`, without artifacts. The item fails as
   * `exists` if the agent has a task with this id. An item without `create` fails as `missing` if the owner has no such task.
   */
  readonly create?: { readonly contextId: string };
  /** The `seq` that the last record of the task must have. Otherwise the item fails as `stale`. */
  readonly expect?: number;
  /** The fence that the task must have. Otherwise the item fails as `fenced`. */
  readonly fence?: number;
  /** The run that the task must have; `null`: no run. Otherwise the item fails as `stale`. */
  readonly run?: StoredRun | null;
  /**
   * Records to add; may be empty. The store derives state, status time, counters and generation from these records. Records after
   * a terminal status fail as `terminal`.
   */
  readonly records: readonly NewRecord[];
  /** Maximum size of the task with these records, in bytes (`TaskHead.bytes`). Otherwise the item fails as `full`. */
  readonly maxBytes?: number;
  /** Further changes in the same transaction. */
  readonly effects?: readonly TaskEffect[];
}

/** A change of a conversation that belongs to no task. */
export interface ContextAppend {
  /** The conversation. */
  readonly context: ContextKey;
  /** The changes to store. */
  readonly effects: readonly ContextEffect[];
}

/** Changes that can be stored together with the records of a task. */
export type TaskEffect =
  | LeaseEffect
  | RunEffect
  | CheckpointEffect
  | TaskStateEffect
  | OnceEffect
  | ContextStateEffect
  | FeatureEffect
  | ActEffect;
/** Changes that can be stored with a conversation. */
export type ContextEffect = ContextStateEffect | ContextMessageEffect | OnceEffect;

/**
 * Changes who executes a task.
 *
 * - `acquire` takes a lease that is free or has expired (`until` ≤ `now`), and raises the fence by one. Otherwise fails as `leased`.
 * - `renew` extends the lease. It requires `fence`, and fails as `fenced` if the lease was released.
 * - `release` releases the lease. It requires `fence`.
 * - `revoke` takes the lease away from its holder, and raises the fence by one.
 */
export type LeaseEffect =
  | {
      /** Always `lease`. */
      readonly effect: "lease";
      /** The operation on the lease. */
      readonly op: "acquire";
      /** The process that takes the lease. */
      readonly holder: string;
      /** The time now, in milliseconds since the Unix epoch. */
      readonly now: number;
      /** When the lease expires, in milliseconds since the Unix epoch. */
      readonly until: number;
    }
  | { readonly effect: "lease"; readonly op: "renew"; readonly until: number }
  | { readonly effect: "lease"; readonly op: "release" }
  | { readonly effect: "lease"; readonly op: "revoke" };

/** Sets the run of a task: the turn that is being executed. A run whose lease is free or expired is `claimable`. */
export interface RunEffect {
  /** Always `run`. */
  readonly effect: "run";
  /** The run; `null`: none. */
  readonly run: StoredRun | null;
}

/** Sets the checkpoint: the value with which a resumed run continues. */
export interface CheckpointEffect {
  /** Always `checkpoint`. */
  readonly effect: "checkpoint";
  /** JSON text; `null` deletes the checkpoint. */
  readonly value: string | null;
}

/** Sets the state of a task: the small value that its turns share. The state is deleted only with the task. */
export interface TaskStateEffect {
  /** Always `taskState`. */
  readonly effect: "taskState";
  /** JSON text; `null` deletes the state. */
  readonly value: string | null;
}

/**
 * Stores an idempotency key, unique for its owner. Fails as `duplicate` if the key exists and has not expired at `now`. The
 * key is deleted with its task or its conversation.
 */
export interface OnceEffect {
  /** Always `once`. */
  readonly effect: "once";
  /** The key. */
  readonly key: string;
  /** Hash of the content under the key, to distinguish a retry from another message. */
  readonly hash: string;
  /** The time now, in milliseconds since the Unix epoch. */
  readonly now: number;
  /** When it expires, in milliseconds since the Unix epoch. Absent: with its task or its conversation. */
  readonly until?: number;
  /** For a direct reply: the answer, as JSON text of a `Message`. */
  readonly answer?: string;
}

/** Sets the state of a conversation: the small value that its turns share. */
export interface ContextStateEffect {
  /** Always `contextState`. */
  readonly effect: "contextState";
  /** JSON text; `null` deletes the state. */
  readonly value: string | null;
}

/**
 * Changes rows that a feature of the server stores with a task, such as webhooks or an extension. The key of a row is unique
 * in its task and feature. A row is deleted with its task. A row with `due` is returned by `dueFeatures` from then on.
 *
 * - `set` stores a row. Without `due`, the row is not due afterwards.
 * - `delete` deletes a row, if there is one.
 * - `wake` sets `due` of each row of the feature in this task that has no `due`. It costs nothing if the task has no rows.
 *
 * `if` is the row as it was read; `null`: no such row. If the row has changed since, the item fails as `changed`. An item
 * that adds rows beyond `featureBounds.rows` fails as `full`.
 */
export type FeatureEffect =
  | {
      /** Always `feature`. */
      readonly effect: "feature";
      /** The operation on the row. */
      readonly op: "set";
      /** The name of the feature. An extension uses its URI. At most `featureBounds.name` bytes. */
      readonly feature: string;
      /** At most `featureBounds.key` bytes. */
      readonly key: string;
      /** JSON text, as `JSON.stringify` returns it. Other text is malformed. At most `featureBounds.value` bytes. */
      readonly value: string;
      /** When the feature must check the row, in whole milliseconds since the Unix epoch. */
      readonly due?: number;
      /** The expected row before the item. */
      readonly if?: FeatureState | null;
    }
  | {
      readonly effect: "feature";
      readonly op: "delete";
      readonly feature: string;
      readonly key: string;
      readonly if?: FeatureState | null;
    }
  | { readonly effect: "feature"; readonly op: "wake"; readonly feature: string; readonly due: number };

/** The state of a feature's row. */
export interface FeatureState {
  /** The JSON text that was set. */
  readonly value: string;
  /** When the feature must check the row, in whole milliseconds since the Unix epoch. Absent: never. */
  readonly due?: number;
}

/** An act to store in the audit. */
export interface AuditedAct {
  /** The subject, such as a task. 1 to `operatorBounds.name` bytes. */
  readonly subject: string;
  /** JSON text. At most `operatorBounds.value` bytes. */
  readonly json: string;
  /** When the act was done, in milliseconds since the Unix epoch. */
  readonly time: number;
}

/** Adds the act of an operator that changes the task to the audit (`StoreOperators.acts`). Only for stores with `operators`. */
export interface ActEffect extends AuditedAct {
  /** Always `act`. */
  readonly effect: "act";
}

/** Adds a message without a task to a conversation: a direct reply, or the message that it answers. */
export interface ContextMessageEffect {
  /** Always `contextMessage`. */
  readonly effect: "contextMessage";
  /** JSON text of a `Message`. */
  readonly json: string;
  /** When the message was sent, in milliseconds since the Unix epoch. */
  readonly time: number;
}

/** The outcome of an item. */
export type AppendOutcome =
  | {
      /** The item was stored. */
      readonly ok: true;
      /** The `seq` of the task's last record, or 0 for a conversation. The records of the item are the last ones. */
      readonly seq: number;
      /** The fence of the task. */
      readonly fence: number;
    }
  | {
      readonly ok: false;
      /** The condition that failed. Nothing was stored. */
      readonly reason:
        | "missing"
        | "exists"
        | "stale"
        | "fenced"
        | "leased"
        | "terminal"
        | "full"
        | "duplicate"
        | "changed";
      /** The task, if it exists and belongs to the owner of the item. */
      readonly head?: TaskHead;
      /** For `duplicate`: the stored record of the key. */
      readonly once?: OnceRecord;
    };

/** The record of an idempotency key. */
export interface OnceRecord {
  /** The key. */
  readonly key: string;
  /** Hash of the content under the key. */
  readonly hash: string;
  /** The task that the first message began or continued. Absent for a direct reply. */
  readonly taskId?: string;
  /** The `seq` of the last record that was stored with the key. */
  readonly seq: number;
  /** For a direct reply: the answer, as JSON text of a `Message`. */
  readonly answer?: string;
}
