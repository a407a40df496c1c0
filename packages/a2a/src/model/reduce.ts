import { deepFreeze } from "../base/index.ts";
import { addPart } from "./content.ts";
import { eventOf, isHistory, type LogEvent, type NewRecord, isTerminal } from "./log.ts";
import type { JsonObject, JsonValue } from "./json.ts";
import type {
  Artifact,
  Message,
  Part,
  Task,
  TaskArtifactUpdateEvent,
  TaskState,
  TaskStatus,
  TaskStatusUpdateEvent,
} from "./types.ts";

/** The fold of a log into the task that a client reads. The cost of an event does not depend on the number of earlier events. */

/** Why an event cannot follow the ones before it. The last two are mistakes of the agent that yielded the event. */
export type FoldProblem =
  /** The first event is not a task. */
  | "noTask"
  /** A task that is not the first event. */
  | "taskExists"
  /** The event names another task. */
  | "otherTask"
  /** The task is over. Terminal states are final (A2A 1.0 §3.1.1). */
  | "terminal"
  /** `append` to an artifact that the task does not have. */
  | "unknownArtifact"
  /** `append` to an artifact after its `lastChunk`. */
  | "closedArtifact";

/** Arguments of the fold, in addition to the event. */
export interface ApplyOptions {
  /** Whether a progress message enters the history (`NewRecord.keep`). */
  readonly keep?: boolean;
}

/** The parts of a task that a snapshot contains. */
export interface SnapshotOptions {
  /** Number of the newest messages (A2A 1.0 §3.2.4). 0: no `history`. Default: all. */
  readonly history?: number;
  /** Whether it contains the artifacts. Default true. */
  readonly artifacts?: boolean;
}

/** Options for building a task. */
export interface FoldOptions {
  /** Whether adjacent text parts of an artifact with the same media type and nothing else become one part. Default false. */
  readonly mergeTextParts?: boolean;
}

/** The members of an update that the ledger uses. */
type ArtifactStep = Pick<TaskArtifactUpdateEvent, "append" | "lastChunk"> & {
  readonly artifact: Pick<Artifact, "artifactId">;
};

/** Tracks which artifacts a task has, and which of them are complete, without their content. */
export class ArtifactLedger {
  readonly #closed = new Map<string, boolean>();

  /** Why an update cannot come next. `undefined` if it can. */
  problem(update: ArtifactStep): FoldProblem | undefined {
    if (update.append !== true) return undefined;
    const closed = this.#closed.get(update.artifact.artifactId);
    if (closed === undefined) return "unknownArtifact";
    return closed ? "closedArtifact" : undefined;
  }

  /** Adds an update. An update without `append` for a known id replaces the artifact and opens it again. */
  note(update: ArtifactStep): void {
    this.#closed.set(update.artifact.artifactId, update.lastChunk === true);
  }

  /** Whether an artifact is complete. `undefined` if the task has no artifact with this id. */
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
  /** The artifact of the last snapshot, until something is added. */
  whole?: Artifact;
}

/**
 * Builds a task event by event. Snapshots are frozen, and they share their content with the events.
 *
 * @example
 * ```ts
 * const fold = new TaskFold();
 * fold.apply({ task: { id: "1", contextId: "1", status: { state: "TASK_STATE_SUBMITTED" } } });
 * fold.apply({ statusUpdate: { taskId: "1", contextId: "1", status: { state: "TASK_STATE_WORKING" } } });
 * fold.snapshot().status.state; // "TASK_STATE_WORKING"
 * ```
 */
export class TaskFold {
  readonly #ledger = new ArtifactLedger();
  readonly #artifacts = new Map<string, Growing>();
  readonly #history: Message[] = [];
  #task: Pick<Task, "id" | "contextId"> | undefined;
  #status: TaskStatus = { state: "TASK_STATE_SUBMITTED" };
  readonly #metadata = new Bag();
  #generation = 0;
  readonly #merges: boolean;

  /** Starts empty, or from a snapshot. The artifacts of a snapshot count as open, and its `generation` as 1. */
  constructor(task?: Task, { mergeTextParts = false }: FoldOptions = {}) {
    this.#merges = mergeTextParts;
    if (task !== undefined) this.#begin(task);
  }

  /** State of the task. `undefined` before the first event. */
  get state(): TaskState | undefined {
    return this.#task === undefined ? undefined : this.#status.state;
  }

  /** The number of events that count for the `generation` of the 1.1 draft. */
  get generation(): number {
    return this.#generation;
  }

  /** Which artifacts there are, and which of them are complete. */
  get artifacts(): Pick<ArtifactLedger, "problem" | "isClosed"> {
    return this.#ledger;
  }

  /** Why this event cannot come next. `undefined` if it can. */
  problem(event: LogEvent): FoldProblem | undefined {
    if (this.#task === undefined) return event.task === undefined ? "noTask" : undefined;
    if (event.task !== undefined) return "taskExists";
    const update = event.statusUpdate ?? event.artifactUpdate;
    if (update !== undefined && update.taskId !== this.#task.id) return "otherTask";
    if (isTerminal(this.#status.state)) return "terminal";
    return event.artifactUpdate === undefined ? undefined : this.#ledger.problem(event.artifactUpdate);
  }

  /** Adds an event, which must not be changed afterwards. If it cannot come next, nothing changes and the problem is returned. */
  apply(event: LogEvent, options: ApplyOptions = {}): FoldProblem | undefined {
    const problem = this.problem(event);
    if (problem !== undefined) return problem;
    if (event.task !== undefined) this.#begin(event.task);
    else if (event.message !== undefined) this.#history.push(event.message);
    else if (event.statusUpdate !== undefined) this.#setStatus(event.statusUpdate, options.keep);
    else this.#addArtifact(event.artifactUpdate);
    return undefined;
  }

  /** Adds the event of a stored record, deeply frozen. */
  applyRecord(record: NewRecord): FoldProblem | undefined {
    return this.apply(deepFreeze(eventOf(record)), record.keep === undefined ? {} : { keep: record.keep });
  }

  /** The task after the events so far; it never changes. Throws `TypeError` before the first event. */
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
      this.#artifacts.set(artifact.artifactId, grow(artifact, this.#merges));
    }
    this.#generation = 1;
  }

  #setStatus(update: TaskStatusUpdateEvent, keep: boolean | undefined): void {
    const { status } = update;
    this.#status = status;
    const { message, state } = status;
    if (message !== undefined && isHistory({ kind: "statusUpdate", state, ...(keep !== undefined && { keep }) })) {
      this.#history.push(message);
    }
    // Metadata of an update becomes metadata of the task, so that later readers find it. The Python and Go SDKs do the same.
    this.#metadata.add(update.metadata);
    this.#generation += 1;
  }

  #addArtifact(update: TaskArtifactUpdateEvent): void {
    const { artifact } = update;
    const known = this.#artifacts.get(artifact.artifactId);
    if (update.append === true && known !== undefined) extend(known, artifact, this.#merges);
    else this.#artifacts.set(artifact.artifactId, grow(artifact, this.#merges));
    this.#ledger.note(update);
    this.#generation += 1;
  }
}

/** The task after one more event, or why that event cannot come next. It copies the task: use `TaskFold` for many events. */
export function reduce(
  task: Task | undefined,
  event: LogEvent,
  options?: ApplyOptions,
): { readonly ok: true; readonly task: Task } | { readonly ok: false; readonly problem: FoldProblem } {
  const fold = new TaskFold(task);
  const problem = fold.apply(event, options);
  return problem === undefined ? { ok: true, task: fold.snapshot() } : { ok: false, problem };
}

function grow(artifact: Artifact, merges: boolean): Growing {
  const growing: Growing = {
    name: undefined,
    description: undefined,
    parts: [],
    metadata: new Bag(),
    extensions: undefined,
  };
  extend(growing, artifact, merges);
  return growing;
}

/** Adds a chunk. Its name and description replace the earlier ones; metadata and extensions are merged. */
function extend(growing: Growing, chunk: Artifact, merges: boolean): void {
  growing.name = chunk.name ?? growing.name;
  growing.description = chunk.description ?? growing.description;
  for (const part of chunk.parts) addPart(growing.parts, part, merges);
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

/** Metadata that grows. The cost of an addition does not depend on the existing amount. */
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

  /** All of it. `undefined` if nothing was added. */
  whole(): JsonObject | undefined {
    // `fromEntries` defines members and does not assign them, so a key named `__proto__` stays a key.
    if (this.#given) this.#whole ??= Object.freeze(Object.fromEntries(this.#members));
    return this.#whole;
  }
}

function newest<T>(list: readonly T[], count: number): readonly T[] {
  return count <= 0 ? [] : list.slice(-count);
}
