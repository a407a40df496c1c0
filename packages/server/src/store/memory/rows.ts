import { utf8Length } from "@parley/a2a/internal/base/index";
import type { LogRecord } from "@parley/a2a/internal/model/index";
import { artifactStarts, compact, type StoredEvent, type TaskPieces } from "../assemble.ts";
import type { OnceRecord, TaskHead } from "../port.ts";
import type { SortedList, TaskIndex } from "./lists.ts";

/* The data of the memory store. */

export interface AgentRows {
  readonly name: string;
  readonly tasks: Map<string, StoredTask>;
  readonly index: TaskIndex<StoredTask>;
  /** Tasks with a run, by the time at which the run may be taken over. */
  readonly runs: SortedList<Due, StoredTask>;
  readonly owners: Map<string, OwnerRows>;
}

export interface OwnerRows {
  readonly name: string;
  readonly agent: AgentRows;
  readonly index: TaskIndex<StoredTask>;
  readonly contexts: Map<string, StoredContext>;
  readonly keys: Map<string, StoredKey>;
}

export interface StoredContext {
  readonly serial: number;
  readonly id: string;
  readonly owner: OwnerRows;
  readonly index: TaskIndex<StoredTask>;
  readonly messages: SortedList<{ readonly place: number }, StoredMessage>;
  /** Idempotency keys that are deleted with the context, not with one of its tasks. */
  keys: readonly StoredKey[];
  tasks: number;
  touched: number;
  state: string | undefined;
}

export interface StoredMessage {
  readonly place: number;
  /** The task of the message. `undefined`: a direct reply, or the message that it answers. */
  readonly task: StoredTask | undefined;
  readonly seq: number;
  event: StoredEvent & Pick<LogRecord, "time"> & Partial<Pick<LogRecord, "turn" | "actor">>;
}

export interface StoredKey {
  readonly serial: number;
  readonly record: OnceRecord;
  readonly until: number;
  readonly owner: OwnerRows;
  /** The task or context with which the key is deleted. */
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
  /** When the task's run may be taken over. `undefined`: the task has no run. */
  due: number | undefined;
  checkpoint: string | undefined;
  taskState: string | undefined;
  /** The records that `read` returns, without gaps. */
  records: readonly LogRecord[];
  base: string;
  status: string | undefined;
  metadata: readonly string[];
  artifacts: readonly string[];
  /** The first record of each artifact in a compacted task. */
  starts: readonly Pick<LogRecord, "seq" | "time" | "turn">[];
}

/** The position of a run among the runs that can be taken over. */
export type Due = Pick<StoredTask, "due" | "number">;

/** When the run of a task may be taken over. `undefined`: the task has no run. */
export function dueOf({ run, leaseUntil }: TaskHead): number | undefined {
  return run === undefined ? undefined : (leaseUntil ?? -Infinity);
}

export function indexesOf({ context }: StoredTask): readonly TaskIndex<StoredTask>[] {
  return [context.owner.agent.index, context.owner.index, context.index];
}

/** The pieces of a task for `assemble`. */
export function piecesOf(task: StoredTask, history: number | undefined): TaskPieces {
  const messages = history === undefined ? task.messages : history === 0 ? [] : task.messages.slice(-history);
  const { head, base, status, metadata, artifacts } = task;
  return { head, base, status, metadata, artifacts, history: messages.map(({ event }) => event) };
}

/** Compacts the log of a task. A task of more than `most` bytes is not changed. */
export function compactTask(task: StoredTask, most: number): void {
  if (task.head.bytes > most) return;
  const { base, artifacts } = compact(piecesOf(task, undefined));
  const chunks = task.records.filter(({ kind }) => kind === "artifactUpdate");
  task.starts = artifactStarts(task.artifacts).flatMap((index) => {
    const chunk = chunks[index];
    return chunk === undefined ? [] : [{ seq: chunk.seq, time: chunk.time, turn: chunk.turn }];
  });
  task.base = base;
  task.artifacts = [...artifacts];
  task.metadata = [];
  task.records = task.records.slice(-1);
  for (const message of task.messages) {
    const { kind, json, time } = message.event;
    message.event = { kind, json, time };
  }
  const kept = [base, ...artifacts, ...task.messages.map(({ event }) => event.json), task.records[0]?.json ?? ""];
  const bytes = kept.reduce((sum, json) => sum + utf8Length(json), 0);
  task.head = Object.freeze({ ...task.head, firstSeq: task.head.seq, bytes: Math.min(bytes, task.head.bytes) });
}

/**
 * The list with one more item. Most lists of a task stay short. `push` and a spread allocate seventeen slots, a kilobyte for each task, but
 * `concat` allocates only the slots that it needs. Row `task-memory` of the benchmarks depends on this.
 */
export function joined<Item>(list: readonly Item[], item: Item): readonly Item[] {
  if (list.length < 4) return list.concat([item]);
  (list as Item[]).push(item);
  return list;
}

/** The value of a map under a key, created if absent. */
export function getOrMake<Key, Value>(map: Map<Key, Value>, key: Key, make: () => Value): Value {
  let value = map.get(key);
  if (value === undefined) {
    value = make();
    map.set(key, value);
  }
  return value;
}
