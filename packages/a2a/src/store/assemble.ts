import { elementsOf, insideOf, membersOf, objectOf, openObjectOf } from "../base/json-text.ts";
import {
  ArtifactLedger,
  isHistory,
  TaskFold,
  type NewRecord,
  type Task,
  type TaskArtifactUpdateEvent,
  type TaskStatusUpdateEvent,
} from "../model/index.ts";
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
function mergeMetadata({ base, metadata }: Pick<TaskPieces, "base" | "metadata">): string | undefined {
  const fold = new TaskFold(JSON.parse(base) as Task);
  for (const json of metadata) fold.apply({ statusUpdate: JSON.parse(json) as TaskStatusUpdateEvent });
  const merged = fold.snapshot({ history: 0 }).metadata;
  return merged && JSON.stringify(merged);
}

/**
 * The same task in fewer pieces: its metadata in the base, and one update an artifact. Status records that are neither
 * history nor the last one are then of no use any more.
 */
export function compact(pieces: TaskPieces): Pick<TaskPieces, "base" | "artifacts"> {
  const { task, contextId } = pieces.head;
  const artifacts = joinArtifacts(pieces.artifacts).map((artifact) =>
    objectOf([
      ["taskId", JSON.stringify(task.taskId)],
      ["contextId", JSON.stringify(contextId)],
      ["artifact", artifact.join("")],
    ]),
  );
  if (pieces.metadata.length === 0) return { base: pieces.base, artifacts };
  const base = membersOf(pieces.base);
  base.set("metadata", mergeMetadata(pieces) ?? "{}");
  return { base: objectOf(base), artifacts };
}

/** JSON text of a record, and its kind. */
export interface StoredEvent {
  /** Which event it is. */
  readonly kind: "task" | "message" | "statusUpdate" | "artifactUpdate";
  /** The event as JSON text. */
  readonly json: string;
}

/** The messages of a record as JSON text, in order. Whether they belong to the history is for `isHistory` to say. */
export function messagesOf({ kind, json }: StoredEvent): readonly string[] {
  switch (kind) {
    case "message":
      return [json];
    case "task":
      return messagesOfTask(membersOf(json));
    case "statusUpdate":
      return messagesOfStatus(membersOf(json).get("status"));
    case "artifactUpdate":
      return none;
  }
}

/** The same of the members of a task. */
export function messagesOfTask(task: ReadonlyMap<string, string>): readonly string[] {
  const history = task.get("history");
  return history === undefined ? none : elementsOf(history);
}

/** The same of the `status` of an update. */
export function messagesOfStatus(status: string | undefined): readonly string[] {
  const message = status === undefined ? undefined : membersOf(status).get("message");
  return message === undefined ? none : [message];
}

const none: readonly string[] = [];

/** An update that counts, taken apart. */
interface Update {
  /** Its place among all of them. */
  readonly index: number;
  readonly artifactId: string;
  /** Whether it adds to an artifact that is there. */
  readonly append: boolean;
  /** Whether it is the first of its artifact. */
  readonly begins: boolean;
  /** The members of its artifact. */
  readonly artifact: Map<string, string>;
}

/** The updates that change a task, in order; `TaskFold` passes over the others as well. */
function* countingUpdates(updates: readonly string[]): Generator<Update, void> {
  const ledger = new ArtifactLedger();
  for (const [index, json] of updates.entries()) {
    const update = membersOf(json);
    const artifact = membersOf(update.get("artifact") ?? "{}");
    const artifactId = JSON.parse(artifact.get("artifactId") ?? '""') as string;
    const append = update.get("append") === "true";
    const step = { append, artifact: { artifactId }, lastChunk: update.get("lastChunk") === "true" };
    if (ledger.problem(step) !== undefined) continue;
    const begins = ledger.isClosed(artifactId) === undefined;
    ledger.note(step);
    yield { index, artifactId, append, begins, artifact };
  }
}

/** Which of the updates began an artifact, for each artifact in the order of `joinArtifacts`. */
export function artifactStarts(updates: readonly string[]): readonly number[] {
  const starts: number[] = [];
  for (const { index, begins } of countingUpdates(updates)) if (begins) starts.push(index);
  return starts;
}

interface Growing {
  /** Its members but for `parts`. */
  readonly rest: Map<string, string>;
  /** Texts of the insides of `parts` arrays. */
  readonly parts: string[];
}

/** Members of an artifact that the fold takes as they are. */
const joinable: ReadonlySet<string> = new Set(["artifactId", "name", "description", "parts", "metadata"]);

/** Each artifact as JSON text. Chunks that bring parts and nothing else, as nearly all do, are joined as they are. */
function joinArtifacts(updates: readonly string[]): readonly Fragments[] {
  const joined = new Map<string, Growing>();
  for (const { artifactId, append, artifact } of countingUpdates(updates)) {
    const plain = artifact.has("artifactId") && [...artifact.keys()].every((name) => joinable.has(name));
    if (!plain) return foldArtifacts(updates);
    const parts = insideOf(artifact.get("parts") ?? "[]");
    artifact.delete("parts");
    const known = joined.get(artifactId);
    if (!append || known === undefined) joined.set(artifactId, { rest: artifact, parts: [parts] });
    else if (artifact.size === 1) known.parts.push(parts);
    else return foldArtifacts(updates);
  }
  return [...joined.values()].map(artifactOf);
}

function artifactOf({ rest, parts }: Growing): Fragments {
  const filled = parts.filter((part) => part.trim() !== "");
  if (filled.length === 0) return [`${openObjectOf(rest)},"parts":[]}`];
  const artifact: string[] = [];
  addList(artifact, `${openObjectOf(rest)},"parts":[`, filled);
  artifact.push("}");
  return artifact;
}

/** The same by way of parsing, for chunks that change more than parts. */
function foldArtifacts(updates: readonly string[]): readonly Fragments[] {
  const events = updates.map((json) => JSON.parse(json) as TaskArtifactUpdateEvent);
  const fold = new TaskFold({ id: events[0]?.taskId ?? "", status: { state: "TASK_STATE_WORKING" } });
  for (const artifactUpdate of events) fold.apply({ artifactUpdate });
  return (fold.snapshot().artifacts ?? []).map((artifact) => [JSON.stringify(artifact)]);
}

/** Adds a list to a text that is not joined yet. `before`: all up to its first item. */
function addList(joined: string[], before: string, items: readonly (Fragments | string)[]): void {
  let separator = before;
  for (const item of items) {
    joined.push(separator);
    separator = ",";
    if (typeof item === "string") joined.push(item);
    else for (const fragment of item) joined.push(fragment);
  }
  joined.push("]");
}
