import type { Principal } from "@parley/a2a/internal/protocol/index";
import type { AppendOutcome, TaskAppend, TaskEffect, TaskHead } from "../../store/index.ts";

/** How the acts of an operator reach the tasks of an engine. */
export interface OperatingHost {
  /** The name of this process in leases. */
  readonly node: string;
  /** Stores a change of a task. `by`: who does it, for the audit. */
  append(item: TaskAppend, by?: Principal): Promise<AppendOutcome>;
  /** Cancels a task that is as it was read, in whatever process it runs. `false`: it has changed. */
  cancel(head: TaskHead, options: CancelOptions): Promise<boolean>;
  /** Does what an act has made due: in this process at once, in the others when they notice. */
  nudge(): Promise<void>;
  /** Whether this process runs an agent. */
  serves(agent: string): boolean;
  /** The processes on the store, if it counts them: how long each has been silent, in milliseconds. */
  nodes(): ReadonlyMap<string, number>;
  /** A process that has been silent for so many milliseconds is dead. */
  readonly silence: number;
}

export interface CancelOptions {
  /** What is stored with the end of the task. */
  readonly effects: readonly TaskEffect[];
  /** Only while this is the last record of the task. Absent: whatever it is. */
  readonly seq?: number | undefined;
  /** Who cancels. */
  readonly by?: Principal | undefined;
}
