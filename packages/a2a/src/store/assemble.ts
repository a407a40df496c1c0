import { membersOf, openObjectOf } from "../base/json-text.ts";
import { isHistory, TaskFold, type NewRecord, type Task, type TaskStatusUpdateEvent } from "../model/index.ts";
import { addList, joinArtifacts } from "./artifact-text.ts";
import { messagesOf, messagesOfStatus, messagesOfTask, type StoredEvent } from "./history.ts";
import type { LoadOptions, TaskHead } from "./port.ts";
import { snapshotFrom, taskFrom, type Fragments, type SnapshotText, type TaskText } from "./task-text.ts";

/*
 * The fold of a log as text: what `TaskFold` gives, put together from the texts of the records. Strings are put side by
 * side, and only what has to be merged is parsed. Rows of the benchmarks that need it: `task-memory`, `get-task`, `list`.
 */

/** What a task is put together from: as much of its log as the options ask for. */
export interface TaskPieces {
  /** What is known about the task. */
  readonly head: TaskHead;
  /** The task as it was made (`baseOf`); a history in it does not count. */
  readonly base: string;
  /** The newest record that set the status, where `base` no longer says it. */
  readonly status: string | undefined;
  /** Status records that carry metadata, in order. */
  readonly metadata: readonly string[];
  /** Records that hold history, in order: all, or enough of the newest. */
  readonly history: readonly StoredEvent[];
  /** Artifact records, in order. */
  readonly artifacts: readonly string[];
}

/** The fold of a log. */
export function assemble(pieces: TaskPieces, options: LoadOptions): SnapshotText {
  return snapshotFrom(pieces.head, fragmentsOf(pieces, options));
}

/** The same as text, of a task that is known to be small. */
export function assembleText(pieces: Omit<TaskPieces, "head">, options: LoadOptions): string {
  return fragmentsOf(pieces, options).join("");
}

function fragmentsOf(pieces: Omit<TaskPieces, "head">, options: LoadOptions): Fragments {
  const status = pieces.status && membersOf(pieces.status).get("status");
  const history = options.history === 0 ? [] : pieces.history.flatMap(messagesOf);
  return joinTask(membersOf(pieces.base), status, history, pieces, options);
}

/** The same of a whole log whose records nobody has sorted yet: a task that was just made. */
export function assembleLog(log: readonly NewRecord[], options: LoadOptions): TaskText {
  const base = log[0]?.json ?? "{}";
  const task = membersOf(base);
  const history = [...messagesOfTask(task)];
  const metadata: string[] = [];
  const artifacts: string[] = [];
  let status: string | undefined;
  for (const record of log) {
    const { kind, json } = record;
    if (kind === "message") history.push(json);
    else if (kind === "artifactUpdate") artifacts.push(json);
    else if (kind === "statusUpdate") {
      const update = membersOf(json);
      status = update.get("status") ?? "{}";
      if (update.has("metadata")) metadata.push(json);
      if (isHistory(record)) history.push(...messagesOfStatus(status));
    }
  }
  return taskFrom(joinTask(task, status, history, { base, metadata, artifacts }, options));
}

/** `task`: the members that it began with. `history`: as much of it as is asked for, or more. */
function joinTask(
  task: Map<string, string>,
  status: string | undefined,
  history: readonly string[],
  pieces: Pick<TaskPieces, "base" | "metadata" | "artifacts">,
  options: LoadOptions,
): Fragments {
  const metadata = pieces.metadata.length === 0 ? task.get("metadata") : mergeMetadata(pieces);
  task.delete("metadata");
  task.delete("history");
  if (status !== undefined) task.set("status", status);
  const joined = [openObjectOf(task)];
  const artifacts = options.artifacts ? joinArtifacts(pieces.artifacts) : [];
  if (artifacts.length > 0) addList(joined, ',"artifacts":[', artifacts);
  const messages = options.history === 0 ? [] : history.slice(-(options.history ?? 0));
  if (messages.length > 0) addList(joined, ',"history":[', messages);
  joined.push(metadata === undefined ? "}" : `,"metadata":${metadata}}`);
  return joined;
}

/** The metadata of a task as JSON text, after all statuses that brought some; `undefined` where there is none. */
export function mergeMetadata({ base, metadata }: Pick<TaskPieces, "base" | "metadata">): string | undefined {
  const fold = new TaskFold(JSON.parse(base) as Task);
  for (const json of metadata) fold.apply({ statusUpdate: JSON.parse(json) as TaskStatusUpdateEvent });
  const merged = fold.snapshot({ history: 0 }).metadata;
  return merged && JSON.stringify(merged);
}
