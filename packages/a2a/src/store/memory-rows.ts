import type { LogRecord } from "../model/index.ts";
import type { StoredEvent } from "./history.ts";
import type { OnceRecord, TaskHead } from "./port.ts";
import type { SortedList } from "./sorted-list.ts";
import type { TaskIndex } from "./task-index.ts";

/** What the memory store holds, in the shape that it is looked for in. */

export interface AgentRoom {
  readonly tasks: Map<string, StoredTask>;
  readonly index: TaskIndex<StoredTask>;
  /** Runs by the time at which they may be taken over. */
  readonly runs: SortedList<Due, StoredTask>;
  readonly owners: Map<string, OwnerRoom>;
}

export interface OwnerRoom {
  readonly name: string;
  readonly agent: AgentRoom;
  readonly index: TaskIndex<StoredTask>;
  readonly contexts: Map<string, StoredContext>;
  readonly keys: Map<string, StoredKey>;
}

export interface StoredContext {
  readonly serial: number;
  readonly id: string;
  readonly owner: OwnerRoom;
  readonly index: TaskIndex<StoredTask>;
  readonly messages: SortedList<{ readonly place: number }, StoredMessage>;
  /** Those that live with the context, not with a task of it. */
  keys: readonly StoredKey[];
  tasks: number;
  touched: number;
  state: string | undefined;
}

export interface StoredMessage {
  readonly place: number;
  /** Of a direct reply, nothing. */
  readonly task: StoredTask | undefined;
  readonly seq: number;
  event: StoredEvent & Pick<LogRecord, "time"> & Partial<Pick<LogRecord, "turn" | "actor">>;
}

export interface StoredKey {
  readonly serial: number;
  readonly record: OnceRecord;
  readonly until: number;
  readonly owner: OwnerRoom;
  /** What it goes with. */
  readonly holder: Pick<StoredTask, "keys">;
}

export interface StoredTask extends Pick<TaskHead, "state" | "statusTime"> {
  readonly number: number;
  readonly context: StoredContext;
  keys: readonly StoredKey[];
  messages: readonly StoredMessage[];
  head: TaskHead;
  state: TaskHead["state"];
  statusTime: number;
  /** When its run may be taken over; of a task without a run, nothing. */
  due: number | undefined;
  checkpoint: string | undefined;
  /** What `read` gives, without gaps. */
  records: readonly LogRecord[];
  base: string;
  status: string | undefined;
  metadata: readonly string[];
  artifacts: readonly string[];
  /** Of a task that was compacted: where each of its artifacts began. */
  starts: readonly Pick<LogRecord, "seq" | "time" | "turn">[];
}

/** Where a run stands among those that can be taken over. */
export type Due = Pick<StoredTask, "due" | "number">;
