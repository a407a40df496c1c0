import {
  ArtifactLedger,
  isHistory,
  TaskFold,
  type NewRecord,
  type Task,
  type TaskArtifactUpdateEvent,
  type TaskStatusUpdateEvent,
} from "../model/index.ts";
import { elements, members, object } from "./slices.ts";
import type { LoadOptions, TaskHead } from "./port.ts";
import { snapshotFrom, taskFrom, type Fragments, type SnapshotText, type TaskText } from "./task-text.ts";

/** JSON text of a record, and its kind. */
export interface StoredEvent {
  readonly kind: "task" | "message" | "statusUpdate" | "artifactUpdate";
  readonly json: string;
}

/** What a task is put together from: as much of its log as the options ask for. */
export interface TaskPieces {
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

/** The fold of a log (`TaskFold` says what it means). */
export function assemble(pieces: TaskPieces, options: LoadOptions): SnapshotText {
  return snapshotFrom(pieces.head, fragmentsOf(pieces, options));
}

/** The fold of a log as text, of a task that is known to be small. */
export function assembleText(pieces: Omit<TaskPieces, "head">, options: LoadOptions): string {
  return fragmentsOf(pieces, options).join("");
}

/** Strings are put side by side, and only what has to be merged is parsed. */
function fragmentsOf(pieces: Omit<TaskPieces, "head">, options: LoadOptions): Fragments {
  const status = pieces.status && members(pieces.status).get("status");
  const history = options.history === 0 ? [] : pieces.history.flatMap(messagesOf);
  return joinTask(members(pieces.base), status, history, pieces, options);
}

/** The fold of a whole log that nobody has taken apart yet: a task that was just made. */
export function assembleLog(log: readonly NewRecord[], options: LoadOptions): TaskText {
  const base = log[0]?.json ?? "{}";
  const task = members(base);
  const history = elements(task.get("history") ?? "[]");
  const metadata: string[] = [];
  const artifacts: string[] = [];
  let status: string | undefined;
  for (const { kind, json, state, keep } of log) {
    if (kind === "message") history.push(json);
    else if (kind === "artifactUpdate") artifacts.push(json);
    else if (kind === "statusUpdate") {
      const update = members(json);
      status = update.get("status") ?? "{}";
      if (update.has("metadata")) metadata.push(json);
      const message = state !== undefined && isHistory(state, keep) ? members(status).get("message") : undefined;
      if (message !== undefined) history.push(message);
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
  const joined = [openMembers(task)];
  const artifacts = options.artifacts ? joinArtifacts(pieces.artifacts) : [];
  if (artifacts.length > 0) addList(joined, ',"artifacts":[', artifacts);
  const messages = options.history === 0 ? [] : history.slice(-(options.history ?? 0));
  if (messages.length > 0) addList(joined, ',"history":[', messages);
  joined.push(metadata === undefined ? "}" : `,"metadata":${metadata}}`);
  return joined;
}

/** The members of an object that goes on. */
function openMembers(entries: ReadonlyMap<string, string>): string {
  return object(entries).slice(0, -1);
}

/** `name`: all up to the first item. */
function addList(joined: string[], name: string, items: readonly (Fragments | string)[]): void {
  let before = name;
  for (const item of items) {
    joined.push(before);
    before = ",";
    if (typeof item === "string") joined.push(item);
    else for (const fragment of item) joined.push(fragment);
  }
  joined.push("]");
}

/**
 * The same task in fewer pieces: its metadata in the base, and one update an artifact. Status records that are neither
 * history nor the last one are then of no use any more.
 */
export function compact(pieces: TaskPieces): Pick<TaskPieces, "base" | "artifacts"> {
  const { task, contextId } = pieces.head;
  const artifacts = joinArtifacts(pieces.artifacts).map((artifact) =>
    object([
      ["taskId", JSON.stringify(task.taskId)],
      ["contextId", JSON.stringify(contextId)],
      ["artifact", artifact.join("")],
    ]),
  );
  if (pieces.metadata.length === 0) return { base: pieces.base, artifacts };
  const base = members(pieces.base);
  base.set("metadata", mergeMetadata(pieces) ?? "{}");
  return { base: object(base), artifacts };
}

/** The messages of a record that is in the history, as JSON text. */
export function messagesOf(event: StoredEvent): readonly string[] {
  if (event.kind === "message") return [event.json];
  const record = members(event.json);
  if (event.kind === "task") return elements(record.get("history") ?? "[]");
  const message = members(record.get("status") ?? "{}").get("message");
  return message === undefined ? [] : [message];
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
  const ledger = new ArtifactLedger();
  const joined = new Map<string, Growing>();
  for (const json of updates) {
    const update = members(json);
    const artifact = members(update.get("artifact") ?? "{}");
    const idText = artifact.get("artifactId") ?? '""';
    const artifactId = JSON.parse(idText) as string;
    const append = update.get("append") === "true";
    const event = { append, artifact: { artifactId }, lastChunk: update.get("lastChunk") === "true" };
    if (ledger.problem(event) !== undefined) continue;
    ledger.note(event);
    const plain = artifact.has("artifactId") && [...artifact.keys()].every((name) => joinable.has(name));
    if (!plain) return foldArtifacts(updates);
    const parts = (artifact.get("parts") ?? "[]").slice(1, -1);
    artifact.delete("parts");
    const known = joined.get(artifactId);
    if (!append || known === undefined) joined.set(artifactId, { rest: artifact, parts: [parts] });
    else if (artifact.size === 1) known.parts.push(parts);
    else return foldArtifacts(updates);
  }
  return [...joined.values()].map(({ rest, parts }) => {
    const filled = parts.filter((part) => part.trim() !== "");
    if (filled.length === 0) return [`${openMembers(rest)},"parts":[]}`];
    const artifact: string[] = [];
    addList(artifact, `${openMembers(rest)},"parts":[`, filled);
    artifact.push("}");
    return artifact;
  });
}

/** For each artifact that `compact` gives, which of the updates began it. */
export function artifactStarts(updates: readonly string[]): readonly number[] {
  const ledger = new ArtifactLedger();
  const starts: number[] = [];
  for (const [index, json] of updates.entries()) {
    const update = members(json);
    const artifactId = JSON.parse(members(update.get("artifact") ?? "{}").get("artifactId") ?? '""') as string;
    const event = {
      append: update.get("append") === "true",
      artifact: { artifactId },
      lastChunk: update.get("lastChunk") === "true",
    };
    if (ledger.problem(event) !== undefined) continue;
    if (ledger.isClosed(artifactId) === undefined) starts.push(index);
    ledger.note(event);
  }
  return starts;
}

/** The same by way of parsing, for chunks that change more than parts. */
function foldArtifacts(updates: readonly string[]): readonly Fragments[] {
  const events = updates.map((json) => JSON.parse(json) as TaskArtifactUpdateEvent);
  const fold = new TaskFold({ id: events[0]?.taskId ?? "", status: { state: "TASK_STATE_WORKING" } });
  for (const artifactUpdate of events) fold.apply({ artifactUpdate });
  return (fold.snapshot().artifacts ?? []).map((artifact) => [JSON.stringify(artifact)]);
}

function mergeMetadata({ base, metadata }: Pick<TaskPieces, "base" | "metadata">): string | undefined {
  const fold = new TaskFold(JSON.parse(base) as Task);
  for (const json of metadata) fold.apply({ statusUpdate: JSON.parse(json) as TaskStatusUpdateEvent });
  const merged = fold.snapshot({ history: 0 }).metadata;
  return merged && JSON.stringify(merged);
}
