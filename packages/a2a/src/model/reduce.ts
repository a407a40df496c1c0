import { isInterrupted, isTerminal } from "./states.ts";
import { eventOf, type LogEvent, type NewRecord, type RecordKind } from "./log.ts";
import type {
  Artifact,
  JsonObject,
  JsonValue,
  Message,
  Part,
  Task,
  TaskArtifactUpdateEvent,
  TaskState,
  TaskStatus,
  TaskStatusUpdateEvent,
} from "./types.ts";

/**
 * The fold of a log into the task that a client reads (D2). Parts are concatenated, text is never merged; what one event
 * costs does not depend on how many came before.
 *
 * History is a filter of the log, in its order: the user's messages, the messages of interrupted and terminal statuses,
 * and progress that the agent said to keep. A message enters it with its status, not when the next status replaces
 * that one, so that the history of a finished task is whole and nothing enters it afterwards (A2A 1.0 §3.7 leaves the
 * choice to the agent). The current status message may therefore be both in `status.message` and the newest one in
 * `history`, under one `messageId`; within `history` nothing stands twice.
 */

/** Why an event cannot follow the ones before it. The last two are the mistake of the agent that yielded it. */
export type FoldProblem =
  /** The log does not begin with the task. */
  | "noTask"
  /** The task is made a second time. */
  | "taskExists"
  /** The event names another task. */
  | "otherTask"
  /** The task is over; terminal states are immutable (A2A 1.0 §3.1.1). */
  | "terminal"
  /** `append` to an artifact that the task does not have. */
  | "unknownArtifact"
  /** `append` to an artifact after its `lastChunk`. */
  | "closedArtifact";

export interface ApplyOptions {
  /** Puts a progress message into the history (`NewRecord.keep`). */
  readonly keep?: boolean;
}

export interface SnapshotOptions {
  /** The newest so many messages; absent: all; 0: `history` is absent (A2A 1.0 §3.2.4). */
  readonly history?: number;
  /** Default true. */
  readonly artifacts?: boolean;
}

/** Whether the message of a status is part of the task's history. */
export function isHistory(state: TaskState, keep?: boolean): boolean {
  return keep === true || isInterrupted(state) || isTerminal(state);
}

/** Whether records of a kind count in the 1.1 draft's `generation`: every one but the user's messages. */
export function countsInGeneration(kind: RecordKind): boolean {
  return kind !== "message";
}

/** What the ledger has to know of an update. */
type ArtifactStep = Pick<TaskArtifactUpdateEvent, "append" | "lastChunk"> & {
  readonly artifact: Pick<Artifact, "artifactId">;
};

/** Which artifacts a task has and which of them are complete, without what is in them. */
export class ArtifactLedger {
  readonly #closed = new Map<string, boolean>();

  /** What is wrong with an update that would come next. */
  problem(update: ArtifactStep): FoldProblem | undefined {
    if (update.append !== true) return undefined;
    const closed = this.#closed.get(update.artifact.artifactId);
    if (closed === undefined) return "unknownArtifact";
    return closed ? "closedArtifact" : undefined;
  }

  /** An update without `append` under a known id replaces the artifact and opens it again. */
  note(update: ArtifactStep): void {
    this.#closed.set(update.artifact.artifactId, update.lastChunk === true);
  }

  /** `undefined`: the task has no such artifact. */
  isClosed(artifactId: string): boolean | undefined {
    return this.#closed.get(artifactId);
  }
}

interface Growing {
  name: string | undefined;
  description: string | undefined;
  readonly parts: Part[];
  readonly metadata: Bag;
  extensions: Set<string> | undefined;
  /** As it was last given out, while nothing was added since. */
  whole?: Artifact;
}

/** Builds a task event by event. Snapshots are frozen and share what is in them with the events that brought it. */
export class TaskFold {
  readonly #ledger = new ArtifactLedger();
  readonly #artifacts = new Map<string, Growing>();
  readonly #history: Message[] = [];
  #task: Pick<Task, "id" | "contextId"> | undefined;
  #status: TaskStatus = { state: "TASK_STATE_SUBMITTED" };
  readonly #metadata = new Bag();
  #generation = 0;

  /** Starts empty, or from a snapshot: its artifacts then count as open, and `generation` as 1. */
  constructor(task?: Task) {
    if (task !== undefined) this.#begin(task);
  }

  /** `undefined` before the first event. */
  get state(): TaskState | undefined {
    return this.#task === undefined ? undefined : this.#status.state;
  }

  /** How many events so far count for the 1.1 draft. */
  get generation(): number {
    return this.#generation;
  }

  /** Which artifacts there are. */
  get artifacts(): Pick<ArtifactLedger, "problem" | "isClosed"> {
    return this.#ledger;
  }

  /** What would be wrong with this event as the next one. */
  problem(event: LogEvent): FoldProblem | undefined {
    if (this.#task === undefined) return event.task === undefined ? "noTask" : undefined;
    if (event.task !== undefined) return "taskExists";
    const update = event.statusUpdate ?? event.artifactUpdate;
    if (update !== undefined && update.taskId !== this.#task.id) return "otherTask";
    if (isTerminal(this.#status.state)) return "terminal";
    return event.artifactUpdate === undefined ? undefined : this.#ledger.problem(event.artifactUpdate);
  }

  /** Adds an event, which nobody may change any more; with a problem it changes nothing and says which. */
  apply(event: LogEvent, options: ApplyOptions = {}): FoldProblem | undefined {
    const problem = this.problem(event);
    if (problem !== undefined) return problem;
    if (event.task !== undefined) this.#begin(event.task);
    else if (event.message !== undefined) this.#history.push(event.message);
    else if (event.statusUpdate !== undefined) this.#setStatus(event.statusUpdate, options.keep);
    else this.#addArtifact(event.artifactUpdate);
    return undefined;
  }

  /** Adds a stored record, frozen to its depth. */
  applyRecord(record: NewRecord): FoldProblem | undefined {
    return this.apply(freeze(eventOf(record)), record.keep === undefined ? {} : { keep: record.keep });
  }

  /** The task as it stands; later events do not change it. Throws when there is none yet. */
  snapshot(options: SnapshotOptions = {}): Task {
    if (this.#task === undefined) throw new TypeError("no task yet");
    const history = options.history === undefined ? this.#history : newest(this.#history, options.history);
    const artifacts = options.artifacts === false ? [] : [...this.#artifacts].map(wholeOf);
    const metadata = this.#metadata.whole();
    const { id, contextId } = this.#task;
    return Object.freeze({
      id,
      ...(contextId !== undefined && { contextId }),
      status: this.#status,
      ...(artifacts.length > 0 && { artifacts: Object.freeze(artifacts) }),
      ...(history.length > 0 && { history: Object.freeze([...history]) }),
      ...(metadata !== undefined && { metadata }),
    });
  }

  #begin(task: Task): void {
    const { id, contextId, status, metadata, history = [], artifacts = [] } = task;
    this.#task = contextId === undefined ? { id } : { id, contextId };
    this.#status = status;
    this.#metadata.add(metadata);
    for (const message of history) this.#history.push(message);
    for (const artifact of artifacts) {
      this.#ledger.note({ artifact });
      this.#artifacts.set(artifact.artifactId, grow(artifact));
    }
    this.#generation = 1;
  }

  #setStatus(update: TaskStatusUpdateEvent, keep: boolean | undefined): void {
    const { status } = update;
    this.#status = status;
    if (status.message !== undefined && isHistory(status.state, keep)) this.#history.push(status.message);
    // What an update says of the task stays with it, so that those who were not there find it (the Python and Go SDKs do so).
    this.#metadata.add(update.metadata);
    this.#generation += 1;
  }

  #addArtifact(update: TaskArtifactUpdateEvent): void {
    const { artifact } = update;
    const known = this.#artifacts.get(artifact.artifactId);
    if (update.append === true && known !== undefined) extend(known, artifact);
    else this.#artifacts.set(artifact.artifactId, grow(artifact));
    this.#ledger.note(update);
    this.#generation += 1;
  }
}

/** The task after one more event, or what is wrong with that event. For many events use `TaskFold`: this one costs the size of the task. */
export function reduce(
  task: Task | undefined,
  event: LogEvent,
  options?: ApplyOptions,
): { readonly ok: true; readonly task: Task } | { readonly ok: false; readonly problem: FoldProblem } {
  const fold = new TaskFold(task);
  const problem = fold.apply(event, options);
  return problem === undefined ? { ok: true, task: fold.snapshot() } : { ok: false, problem };
}

function grow(artifact: Artifact): Growing {
  const growing: Growing = {
    name: undefined,
    description: undefined,
    parts: [],
    metadata: new Bag(),
    extensions: undefined,
  };
  extend(growing, artifact);
  return growing;
}

/** A name or description that comes with a chunk replaces the one before; metadata is merged, extensions are united. */
function extend(growing: Growing, chunk: Artifact): void {
  growing.name = chunk.name ?? growing.name;
  growing.description = chunk.description ?? growing.description;
  for (const part of chunk.parts) growing.parts.push(part);
  growing.metadata.add(chunk.metadata);
  if (chunk.extensions !== undefined)
    growing.extensions = new Set([...(growing.extensions ?? []), ...chunk.extensions]);
  delete growing.whole;
}

function wholeOf([artifactId, growing]: readonly [string, Growing]): Artifact {
  const { name, description, parts, extensions } = growing;
  const metadata = growing.metadata.whole();
  growing.whole ??= Object.freeze({
    artifactId,
    ...(name !== undefined && { name }),
    ...(description !== undefined && { description }),
    parts: Object.freeze([...parts]),
    ...(metadata !== undefined && { metadata }),
    ...(extensions !== undefined && { extensions: Object.freeze([...extensions]) }),
  });
  return growing.whole;
}

/** Metadata that grows: adding costs what is added. */
class Bag {
  readonly #members = new Map<string, JsonValue>();
  #whole: JsonObject | undefined;
  #given = false;

  add(added: JsonObject | undefined): void {
    if (added === undefined) return;
    for (const name of Object.keys(added)) this.#members.set(name, added[name] as JsonValue);
    this.#whole = undefined;
    this.#given = true;
  }

  /** `undefined` when there was never any. */
  whole(): JsonObject | undefined {
    // `fromEntries` defines members and does not assign them, so a key named `__proto__` stays a key.
    if (this.#given) this.#whole ??= Object.freeze(Object.fromEntries(this.#members));
    return this.#whole;
  }
}

function newest<T>(list: readonly T[], count: number): readonly T[] {
  return count <= 0 ? [] : list.slice(-count);
}

function freeze<T>(value: T): T {
  if (typeof value === "object" && value !== null) {
    Object.freeze(value);
    for (const member of Object.values(value)) freeze(member);
  }
  return value;
}
