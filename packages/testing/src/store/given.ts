import {
  TaskFold,
  type Message,
  type NewRecord,
  type Task,
  type TaskArtifactUpdateEvent,
  type TaskState,
  type TaskStatusUpdateEvent,
} from "@parley/a2a/internal/model/index";
import type {
  AppendItem,
  AppendOutcome,
  ListQuery,
  LoadOptions,
  Store,
  TaskAppend,
  TaskEffect,
  TaskHead,
  TaskKey,
} from "@parley/server/internal/store/index";
import type { Expect } from "../runner.ts";

/* Helpers for the cases of the store contract. */

export interface Given {
  /** An empty store. */
  readonly store: Store;
  readonly expect: Expect;
  /** Closes a store and opens its data again. */
  readonly reopen?: (store: Store) => Promise<Store>;
  /** Opens the data of a store a second time, while the store is open. */
  readonly share?: (store: Store) => Promise<Store>;
}

export type Case = (given: Given) => Promise<void>;
export type Cases = Readonly<Record<string, Case>>;

/** A case for two open stores with the same data. Without `share`, both are the same store. */
export function sharing(body: (given: Given & { readonly other: Store }) => Promise<void>): Case {
  return async (given) => {
    const { store, share } = given;
    const other = share === undefined ? store : await share(store);
    try {
      await body({ ...given, other });
    } finally {
      if (other !== store) await other.close();
    }
  };
}

export const alice = { agent: "agent", owner: "alice" } as const;
export const bob = { agent: "agent", owner: "bob" } as const;
export const context = "conversation";

export function key(taskId: string, owner: { agent: string; owner: string } = alice): TaskKey {
  return { ...owner, taskId };
}

export function userMessage(text: string, messageId = `m-${text}`): Message {
  return { messageId, role: "ROLE_USER", parts: [{ text }] };
}

export function agentMessage(text: string): Message {
  return { messageId: `m-${text}`, role: "ROLE_AGENT", parts: [{ text }] };
}

const user = { actor: "user", turn: 1, attempt: 1 } as const;
const agent = { actor: "agent", turn: 1, attempt: 1 } as const;

interface CreateOptions {
  readonly contextId?: string;
  readonly time?: number;
  readonly state?: TaskState;
  readonly text?: string;
  readonly owner?: { agent: string; owner: string };
  readonly metadata?: Task["metadata"];
}

interface Making extends TaskAppend {
  readonly create: { readonly contextId: string };
  readonly records: readonly [NewRecord];
}

/** An item that creates a task. */
export function making(taskId: string, options: CreateOptions = {}): Making {
  const { contextId = context, time = 1000, state = "TASK_STATE_SUBMITTED", text = "hello", owner = alice } = options;
  const task: Task = {
    id: taskId,
    contextId,
    status: { state, timestamp: new Date(time).toISOString() },
    history: [userMessage(text, `m-${taskId}`)],
    ...(options.metadata && { metadata: options.metadata }),
  };
  const record: NewRecord = { kind: "task", json: JSON.stringify(task), time, state, ...user };
  return { task: key(taskId, owner), create: { contextId }, records: [record] };
}

/** An item with records only. */
export function adding(taskId: string, ...records: readonly NewRecord[]): TaskAppend {
  return { task: key(taskId), records };
}

/** An item without records. */
export function effects(taskId: string, ...list: readonly TaskEffect[]): TaskAppend {
  return { task: key(taskId), records: [], effects: list };
}

interface StatusOptions {
  readonly time?: number;
  readonly text?: string;
  readonly keep?: boolean;
  readonly contextId?: string;
  readonly metadata?: TaskStatusUpdateEvent["metadata"];
}

export function status(taskId: string, state: TaskState, options: StatusOptions = {}): NewRecord {
  const { time = 1000, text, keep, contextId = context, metadata } = options;
  const update: TaskStatusUpdateEvent = {
    taskId,
    contextId,
    status: {
      state,
      timestamp: new Date(time).toISOString(),
      ...(text !== undefined && { message: agentMessage(text) }),
    },
    ...(metadata && { metadata }),
  };
  return {
    kind: "statusUpdate",
    json: JSON.stringify(update),
    time,
    state,
    ...agent,
    ...(keep !== undefined && { keep }),
  };
}

export const working = (taskId: string, options?: StatusOptions): NewRecord =>
  status(taskId, "TASK_STATE_WORKING", options);
export const completed = (taskId: string, options?: StatusOptions): NewRecord =>
  status(taskId, "TASK_STATE_COMPLETED", options);

export function said(text: string, time = 1000): NewRecord {
  return { kind: "message", json: JSON.stringify(userMessage(text)), time, ...user };
}

export function chunk(
  taskId: string,
  artifactId: string,
  text: string,
  options: Pick<TaskArtifactUpdateEvent, "append" | "lastChunk"> & Partial<TaskArtifactUpdateEvent["artifact"]> = {},
): NewRecord {
  const { append, lastChunk, ...artifact } = options;
  const update: TaskArtifactUpdateEvent = {
    taskId,
    contextId: context,
    artifact: { artifactId, parts: [{ text }], ...artifact },
    ...(append !== undefined && { append }),
    ...(lastChunk !== undefined && { lastChunk }),
  };
  return { kind: "artifactUpdate", json: JSON.stringify(update), time: 1000, ...agent };
}

/** Appends one item and returns its outcome. */
export async function append(store: Store, item: AppendItem): Promise<AppendOutcome> {
  const [outcome] = await store.append([item]);
  if (outcome === undefined) throw new Error("append returned no outcome for its item");
  return outcome;
}

/** Appends one item and returns `"ok"`, or the reason. */
export async function verdict(store: Store, item: AppendItem): Promise<string> {
  return verdicts([await append(store, item)]).join();
}

/** For each outcome `"ok"`, or the reason. */
export function verdicts(outcomes: readonly AppendOutcome[]): readonly string[] {
  return outcomes.map((outcome) => (outcome.ok ? "ok" : outcome.reason));
}

export async function headOf(store: Store, task: TaskKey): Promise<TaskHead> {
  const head = await store.head(task, task.taskId);
  if (head === undefined) throw new Error(`no task ${task.taskId}`);
  return head;
}

/** The fold of a log that `load` must return. */
export function folded(records: readonly NewRecord[], options: Partial<LoadOptions> = {}): Task {
  const fold = new TaskFold(undefined, options);
  for (const record of records) fold.applyRecord(record);
  return plain(fold.snapshot(options));
}

/** A JSON copy of the value: without prototypes, `undefined` and frozen objects. */
export function plain<T>(value: T): T {
  return JSON.parse(JSON.stringify(value)) as T;
}

/** All artifacts. */
export const all = { artifacts: true } as const;

/** A page without artifacts. */
export const bare = { limit: 100, artifacts: false } as const;

/** The ids of Alice's tasks, in the order of the list. */
export async function idsOf(store: Store, query: Partial<ListQuery> = {}): Promise<readonly string[]> {
  return (await store.list(alice, { ...bare, ...query })).tasks.map(({ task }) => task.id);
}

/** Tries to change a value. A frozen value may throw. */
export function spoil(change: () => void): void {
  try {
    change();
  } catch {
    // Frozen, so it cannot be changed.
  }
}

/** The `code` of the error that a call rejects with. */
export async function codeOf(call: () => Promise<unknown>): Promise<unknown> {
  try {
    await call();
    return "resolved";
  } catch (thrown) {
    return thrown instanceof Error && "code" in thrown
      ? thrown.code
      : thrown instanceof TypeError
        ? "TypeError"
        : thrown;
  }
}
