import { elementsOf, insideOf, membersOf, objectOf, openObjectOf } from "@parley/a2a/internal/base/json-text";
import {
  ArtifactLedger,
  isHistory,
  TaskFold,
  type NewRecord,
  type Task,
  type TaskStatusUpdateEvent,
} from "@parley/a2a/internal/model/index";
import type { TaskHead } from "./append.ts";
import type { LoadOptions } from "./queries.ts";
import { snapshotFrom, taskFrom, type Fragments, type SnapshotText, type TaskText } from "./task-text.ts";
import { storedJson } from "@parley/a2a/internal/base/json";
import { updateJson } from "./json.ts";

/*
 * The fold of a log as JSON text, with the same result as `TaskFold`. The texts of the records are concatenated, and only texts
 * that must be merged are parsed. The benchmark rows `task-memory`, `get-task` and `list` need this.
 */

/** The parts of a log from which a task is assembled. Parts that the options do not request are empty. */
export interface TaskPieces {
  /** The state of the task. */
  readonly head: TaskHead;
  /** The task as it was created (`baseOf`). A history in this text is ignored. */
  readonly base: string;
  /** The newest status record. `undefined`: the task has the status in `base`. */
  readonly status: string | undefined;
  /** Status records that carry metadata, in order. */
  readonly metadata: readonly string[];
  /** Records with messages of the history, in order: all records, or enough of the newest ones. */
  readonly history: readonly StoredEvent[];
  /** Artifact records, in order. */
  readonly artifacts: readonly string[];
}

/** Assembles a snapshot. */
export function assemble(pieces: TaskPieces, options: LoadOptions): SnapshotText {
  return snapshotFrom(pieces.head, fragmentsOf(pieces, options));
}

/** Assembles the JSON text of a small task. */
export function assembleText(pieces: Omit<TaskPieces, "head">, options: LoadOptions): string {
  return fragmentsOf(pieces, options).join("");
}

function fragmentsOf(pieces: Omit<TaskPieces, "head">, options: LoadOptions): Fragments {
  const status = pieces.status && membersOf(pieces.status).get("status");
  const history = options.history === 0 ? [] : pieces.history.flatMap(messagesOf);
  return joinTask(membersOf(pieces.base), status, history, pieces, options);
}

/** Assembles a task from a whole log. */
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

/** `task`: the members of the task when it was created. `history`: at least as many messages as the options request. */
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
  const artifacts = options.artifacts ? joinArtifacts(pieces.artifacts, options.mergeTextParts) : [];
  if (artifacts.length > 0) addList(joined, ',"artifacts":[', artifacts);
  const messages = options.history === 0 ? [] : history.slice(-(options.history ?? 0));
  if (messages.length > 0) addList(joined, ',"history":[', messages);
  joined.push(metadata === undefined ? "}" : `,"metadata":${metadata}}`);
  return joined;
}

const baseJson = storedJson<Task>();
const statusJson = storedJson<TaskStatusUpdateEvent>();
const idJson = storedJson<string>();

/** The metadata of a task after all its status records, as JSON text. `undefined`: the task has no metadata. */
function mergeMetadata({ base, metadata }: Pick<TaskPieces, "base" | "metadata">): string | undefined {
  const fold = new TaskFold(baseJson.read(base));
  for (const json of metadata) fold.apply({ statusUpdate: statusJson.read(json) });
  const merged = fold.snapshot({ history: 0 }).metadata;
  return merged && JSON.stringify(merged);
}

/** Compacts a task to a base with its metadata, and one record per artifact. Apart from these, only history and the last status are needed. */
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

/** The JSON text of a record, and the record's kind. */
export interface StoredEvent {
  /** The kind of the event. */
  readonly kind: "task" | "message" | "statusUpdate" | "artifactUpdate";
  /** The event as JSON text. */
  readonly json: string;
}

/** The messages of a record as JSON text, in order. `isHistory` tells whether they belong to the history. */
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

/** The messages of a task, by its members. */
export function messagesOfTask(task: ReadonlyMap<string, string>): readonly string[] {
  const history = task.get("history");
  return history === undefined ? none : elementsOf(history);
}

/** The message of the `status` of an update. */
export function messagesOfStatus(status: string | undefined): readonly string[] {
  const message = status === undefined ? undefined : membersOf(status).get("message");
  return message === undefined ? none : [message];
}

const none: readonly string[] = [];

/** An update that changes the task, and its members. */
interface Update {
  /** The index of this update among all updates. */
  readonly index: number;
  readonly artifactId: string;
  /** Whether the update appends to an existing artifact. */
  readonly append: boolean;
  /** Whether this is the first update of its artifact. */
  readonly begins: boolean;
  readonly artifact: Map<string, string>;
}

/** The updates that change a task, in order. `TaskFold` ignores other updates too. */
function* countingUpdates(updates: readonly string[]): Generator<Update, void> {
  const ledger = new ArtifactLedger();
  for (const [index, json] of updates.entries()) {
    const update = membersOf(json);
    const artifact = membersOf(update.get("artifact") ?? "{}");
    const artifactId = idJson.read(artifact.get("artifactId") ?? '""');
    const append = update.get("append") === "true";
    const step = { append, artifact: { artifactId }, lastChunk: update.get("lastChunk") === "true" };
    if (ledger.problem(step) !== undefined) continue;
    const begins = ledger.isClosed(artifactId) === undefined;
    ledger.note(step);
    yield { index, artifactId, append, begins, artifact };
  }
}

/** The index of the update that began each artifact, in the order of `joinArtifacts`. */
export function artifactStarts(updates: readonly string[]): readonly number[] {
  const starts: number[] = [];
  for (const { index, begins } of countingUpdates(updates)) if (begins) starts.push(index);
  return starts;
}

interface Growing {
  /** The members of the artifact without `parts`. */
  readonly rest: Map<string, string>;
  readonly parts: PartTexts;
}

/** Members of an artifact that need no merge. */
const joinable: ReadonlySet<string> = new Set(["artifactId", "name", "description", "parts", "metadata"]);

/** Each artifact as JSON text. Chunks that have only parts, as nearly all do, are concatenated. */
function joinArtifacts(updates: readonly string[], mergeTextParts = false): readonly Fragments[] {
  const joined = new Map<string, Growing>();
  for (const { artifactId, append, artifact } of countingUpdates(updates)) {
    const plain = artifact.has("artifactId") && [...artifact.keys()].every((name) => joinable.has(name));
    if (!plain) return foldArtifacts(updates, mergeTextParts);
    const added = artifact.get("parts") ?? "[]";
    artifact.delete("parts");
    let known = append ? joined.get(artifactId) : undefined;
    if (known === undefined) {
      known = { rest: artifact, parts: mergeTextParts ? new MergedParts() : new JoinedParts() };
      joined.set(artifactId, known);
    } else if (artifact.size > 1) return foldArtifacts(updates, mergeTextParts);
    known.parts.add(added);
  }
  return [...joined.values()].map(artifactOf);
}

function artifactOf({ rest, parts }: Growing): Fragments {
  const texts = parts.texts();
  if (texts.length === 0) return [`${openObjectOf(rest)},"parts":[]}`];
  const artifact: string[] = [];
  addList(artifact, `${openObjectOf(rest)},"parts":[`, texts);
  artifact.push("}");
  return artifact;
}

/** Collects the parts of an artifact as JSON text. */
interface PartTexts {
  add(array: string): void;
  /** The parts, joined by commas. */
  texts(): readonly (Fragments | string)[];
}

/** Keeps parts unchanged, and concatenates their arrays. */
class JoinedParts implements PartTexts {
  readonly #insides: string[] = [];

  add(array: string): void {
    const inside = insideOf(array);
    if (inside.trim() !== "") this.#insides.push(inside);
  }

  texts(): readonly string[] {
    return this.#insides;
  }
}

/** Adjacent texts that become one part. */
interface TextRun {
  readonly first: string;
  /** The JSON texts without their quotes. */
  readonly contents: string[];
  readonly mediaType: string | undefined;
}

/** Merges adjacent text parts, like `addPart` of the model. Concatenates the JSON texts with their escapes. */
class MergedParts implements PartTexts {
  readonly #runs: (TextRun | string)[] = [];
  #open: TextRun | undefined;

  add(array: string): void {
    for (const part of elementsOf(array)) {
      const run = textRunOf(part);
      if (run === undefined || run.mediaType !== this.#open?.mediaType || this.#open === undefined) {
        this.#runs.push(run ?? part);
        this.#open = run;
      } else this.#open.contents.push(...run.contents);
    }
  }

  texts(): readonly (Fragments | string)[] {
    return this.#runs.map((run) => {
      if (typeof run === "string") return run;
      const { first, contents, mediaType } = run;
      if (contents.length === 1) return first;
      return ['{"text":"', ...contents, mediaType === undefined ? '"}' : `","mediaType":${mediaType}}`];
    });
  }
}

/** The text run of a part that has only text and media type. `undefined` for any other part. */
function textRunOf(part: string): TextRun | undefined {
  const members = membersOf(part);
  const text = members.get("text");
  const mediaType = members.get("mediaType");
  if (text === undefined || members.size > (mediaType === undefined ? 1 : 2)) return undefined;
  return { first: part, contents: [insideOf(text)], mediaType };
}

/** Folds artifacts by parsing their updates, for chunks that change more than parts. */
function foldArtifacts(updates: readonly string[], mergeTextParts: boolean): readonly Fragments[] {
  const events = updates.map((json) => updateJson.read(json));
  const empty = { id: events[0]?.taskId ?? "", status: { state: "TASK_STATE_WORKING" } } as const;
  const fold = new TaskFold(empty, { mergeTextParts });
  for (const artifactUpdate of events) fold.apply({ artifactUpdate });
  return (fold.snapshot().artifacts ?? []).map((artifact) => [JSON.stringify(artifact)]);
}

/** Adds a list to a text in fragments. `before`: the text before its first item. */
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

/** The JSON of a task's first record, without the history. */
export function baseOf({ json }: NewRecord): string {
  const task = membersOf(json);
  task.delete("history");
  return objectOf(task);
}
