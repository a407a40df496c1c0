import type { Principal } from "@parley/a2a/internal/protocol/index";
import type { AppendOutcome, TaskAppend, TaskEffect, TaskHead } from "../../store/index.ts";

/** How the acts of an operator reach the tasks of an engine. */
export interface OperatingHost {
  /** The name of this process in leases. */
  readonly node: string;
  /** Stores a change of a task. `by`: who does it, for the audit. */
  append(item: TaskAppend, by?: Principal): Promise<AppendOutcome>;
  /** Cancels a task in any process, if it has not changed since it was read. `false`: it has changed. */
  cancel(head: TaskHead, options: CancelOptions): Promise<boolean>;
  /** Does the work that an act has made due: immediately in this process; other processes notice it. */
  nudge(): Promise<void>;
  /** Whether this process runs an agent. */
  serves(agent: string): boolean;
  /** The processes on the store, if it counts them: how long each has been silent, in milliseconds. */
  nodes(): ReadonlyMap<string, number>;
  /** How long a process must be silent to count as dead, in milliseconds. */
  readonly silence: number;
}

export interface CancelOptions {
  /** Effects to store with the end of the task. */
  readonly effects: readonly TaskEffect[];
  /** Only if this is the last record of the task. Absent: any. */
  readonly seq?: number | undefined;
  /** Who cancels. */
  readonly by?: Principal | undefined;
}
