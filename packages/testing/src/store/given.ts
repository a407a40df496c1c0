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
  LoadOptions,
  Store,
  TaskAppend,
  TaskEffect,
  TaskHead,
  TaskKey,
} from "@parley/server/internal/store/index";

/** What the cases of the store contract share. */

/** The part of an assertion library that the suites use: vitest's, jest's, or one that you wrote. */
export interface Expectation {
  /** Fails unless the values are deeply equal. */
  toEqual(expected: unknown): void;
}

export interface Given {
  /** An empty store. */
  readonly store: Store;
  readonly expect: (actual: unknown) => Expectation;
  /** Closes a store and opens what it has stored. */
  readonly reopen?: (store: Store) => Promise<Store>;
  /** Opens the data of a store a second time, while the store is open. */
  readonly share?: (store: Store) => Promise<Store>;
}

export type Case = (given: Given) => Promise<void>;
export type Cases = Readonly<Record<string, Case>>;

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

/** An item that creates a task. */
export function making(taskId: string, options: CreateOptions = {}): TaskAppend & { readonly create: object } {
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
  if (outcome === undefined) throw new Error("append gave no outcome for its item");
  return outcome;
}

/** Of each outcome `"ok"`, or the reason. */
export function verdicts(outcomes: readonly AppendOutcome[]): readonly string[] {
  return outcomes.map((outcome) => (outcome.ok ? "ok" : outcome.reason));
}

export async function headOf(store: Store, task: TaskKey): Promise<TaskHead> {
  const head = await store.head(task, task.taskId);
  if (head === undefined) throw new Error(`there is no task ${task.taskId}`);
  return head;
}

/** The fold of a log, as `load` has to return it. */
export function folded(records: readonly NewRecord[], options: Partial<LoadOptions> = {}): Task {
  const fold = new TaskFold(undefined, options);
  for (const record of records) fold.applyRecord(record);
  return plain(fold.snapshot(options));
}

/** The value as JSON would transport it: without prototypes, `undefined` and frozen objects. */
export function plain<T>(value: T): T {
  return JSON.parse(JSON.stringify(value)) as T;
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

/**
 * The `expect` of the suites where a runner has none. Values are equal if they have the same members with equal values. A
 * member that is `undefined` counts as absent.
 */
export function plainExpect(actual: unknown): Expectation {
  return {
    toEqual(expected) {
      const where = difference(actual, expected, "");
      if (where === undefined) return;
      throw new Error(
        `Not equal${where === "" ? "" : ` at ${where}`}: found ${shown(actual)}, expected ${shown(expected)}`,
      );
    },
  };
}

/** The path of the first difference. `""`: the values themselves differ. `undefined`: they are equal. */
function difference(actual: unknown, expected: unknown, path: string): string | undefined {
  if (Object.is(actual, expected)) return undefined;
  if (!isObject(actual) || !isObject(expected) || Array.isArray(actual) !== Array.isArray(expected)) return path;
  for (const name of new Set([...membersOf(actual), ...membersOf(expected)])) {
    const found = difference(actual[name], expected[name], `${path}.${name}`);
    if (found !== undefined) return found;
  }
  return undefined;
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null;
}

/** The own members of an object, also `__proto__`. Those of an array include its length. */
function membersOf(value: Readonly<Record<string, unknown>>): readonly string[] {
  return Array.isArray(value) ? [...Object.keys(value), "length"] : Object.keys(value);
}

function shown(value: unknown): string {
  const text = JSON.stringify(value) ?? String(value);
  return text.length > 2000 ? `${text.slice(0, 2000)} …` : text;
}
