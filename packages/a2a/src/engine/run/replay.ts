import {
  eventOf,
  TaskFold,
  type Artifact,
  type LogRecord,
  type NewRecord,
  type TaskArtifactUpdateEvent,
} from "../../model/index.ts";
import type { Store, TaskKey } from "../../store/index.ts";
import type { Additions } from "../log/index.ts";

const pageSize = 256;

/** The events of a lost run. */
interface LostEvents {
  readonly store: Store;
  readonly task: TaskKey;
  readonly turn: number;
  /** The turn of the run, where that goes on with an earlier one. */
  readonly last: number;
  /** `seq` of the turn's message. */
  readonly after: number;
  /** How many events of the turn its last checkpoint covers. */
  readonly skip: number;
  /** Takes out of a record what a run that repeats it may make anew. */
  readonly repeatable: ((record: NewRecord) => NewRecord) | undefined;
}

/**
 * Compares the events of a resumed run with those that the lost run had stored after its last checkpoint. Events that are the
 * same are not stored twice. From the first difference on all events are new, and those that the lost run had stored beyond
 * that point are its `tail`.
 */
export class Replay {
  readonly #store: Store;
  readonly #task: TaskKey;
  readonly #turn: number;
  readonly #last: number;
  readonly #repeatable: LostEvents["repeatable"];
  #skip: number;
  /** `seq` of the last record that was read, and of the last one that was repeated. */
  #after: number;
  #repeated: number;
  #page: LogRecord[] = [];
  #over = false;
  #tail: LostTail | undefined;

  constructor({ store, task, turn, last, after, skip, repeatable }: LostEvents) {
    this.#repeatable = repeatable;
    this.#store = store;
    this.#task = task;
    this.#turn = turn;
    this.#last = last;
    this.#after = this.#repeated = after;
    this.#skip = skip;
  }

  /** The agent has yielded something new. */
  get over(): boolean {
    return this.#over;
  }

  /** Once it is over: the events of the lost run that this run has not repeated, if there are any. */
  get tail(): LostTail | undefined {
    return this.#tail;
  }

  /**
   * How many of the records, from the first on, are stored already. `additions`: what extensions have added to the records. Where the task
   * had no room for an addition, the record is stored without it.
   */
  async repeatedOf(records: readonly NewRecord[], additions: Additions | undefined): Promise<number> {
    for (const [at, record] of records.entries()) {
      const stored = await this.#next();
      if (stored === undefined || !this.#isStored(stored, record, additions)) {
        this.#over = true;
        if (stored !== undefined) this.#tail = await this.#tailFrom(stored);
        return at;
      }
      this.#repeated = stored.seq;
    }
    return records.length;
  }

  #isStored(stored: LogRecord, record: NewRecord, additions: Additions | undefined): boolean {
    if (isRepeated(stored, record, this.#repeatable)) return true;
    const bare = additions?.bareOf(record);
    return bare !== undefined && isRepeated(stored, bare, this.#repeatable);
  }

  async #tailFrom(first: LogRecord): Promise<LostTail> {
    const artifacts = new Set<string>();
    let events = 0;
    for (let record: LogRecord | undefined = first; record !== undefined; record = await this.#next()) {
      events += 1;
      if (record.kind === "artifactUpdate") artifacts.add(updateOf(record).artifact.artifactId);
    }
    return new LostTail(this.#store, this.#task, { events, artifacts, from: this.#repeated });
  }

  async #next(): Promise<LogRecord | undefined> {
    for (;;) {
      const record = this.#page.shift() ?? (await this.#read());
      if (record === undefined) return undefined;
      // What came from other agents is not repeated: delegations go on where they were.
      if (record.actor !== "agent" || record.turn < this.#turn || record.turn > this.#last) continue;
      if (this.#skip === 0) return record;
      this.#skip -= 1;
      this.#repeated = record.seq;
    }
  }

  async #read(): Promise<LogRecord | undefined> {
    const page = await this.#store.read(this.#task, this.#task.taskId, {
      after: this.#after,
      limit: pageSize,
      kinds: ["statusUpdate", "artifactUpdate"],
    });
    const last = page?.records.at(-1);
    if (page === undefined || last === undefined) return undefined;
    this.#after = last.seq;
    this.#page = [...page.records];
    return this.#page.shift();
  }
}

/**
 * Events of a lost run that the run after it did not repeat. Their statuses stay: they are history. Their chunks do not
 * count: the next chunk of such an artifact replaces the artifact by what it was before the first difference, and the chunk.
 */
export class LostTail {
  /** How many events there are. */
  readonly events: number;
  readonly #store: Store;
  readonly #task: TaskKey;
  /** Ids of artifacts that still hold lost chunks. */
  readonly #artifacts: Set<string>;
  /** `seq` of the last record before the first difference. */
  readonly #from: number;

  constructor(
    store: Store,
    task: TaskKey,
    lost: { readonly events: number; readonly artifacts: Set<string>; readonly from: number },
  ) {
    this.events = lost.events;
    this.#store = store;
    this.#task = task;
    this.#artifacts = lost.artifacts;
    this.#from = lost.from;
  }

  get artifacts(): Iterable<string> {
    return this.#artifacts;
  }

  /** The records, where one that appends to an artifact with lost chunks replaces that artifact instead. */
  async replaceIn(records: readonly NewRecord[]): Promise<readonly NewRecord[]> {
    if (this.#artifacts.size === 0) return records;
    const replaced: NewRecord[] = [];
    for (const record of records) {
      replaced.push(record.kind === "artifactUpdate" ? await this.#replace(record) : record);
    }
    return replaced;
  }

  async #replace(record: NewRecord): Promise<NewRecord> {
    const { append, ...update } = updateOf(record);
    const { artifactId } = update.artifact;
    if (!this.#artifacts.delete(artifactId) || append !== true) return record;
    const fold = await this.#foldOf(artifactId);
    fold.apply({ artifactUpdate: { ...update, append } });
    const artifact = fold.snapshot().artifacts?.[0] as Artifact;
    return { ...record, json: JSON.stringify({ ...update, artifact }) };
  }

  /** An artifact as it was before the first difference. */
  async #foldOf(artifactId: string): Promise<TaskFold> {
    const { taskId } = this.#task;
    const fold = new TaskFold({ id: taskId, contextId: "", status: { state: "TASK_STATE_WORKING" } });
    for (let after = 0; after < this.#from;) {
      const page = await this.#store.read(this.#task, taskId, { after, limit: pageSize, kinds: ["artifactUpdate"] });
      const records = page?.records.filter(({ seq }) => seq <= this.#from) ?? [];
      for (const record of records) {
        const artifactUpdate = updateOf(record);
        if (artifactUpdate.artifact.artifactId === artifactId) fold.apply({ artifactUpdate });
      }
      after = records.at(-1)?.seq ?? this.#from;
    }
    return fold;
  }
}

function updateOf(record: NewRecord): TaskArtifactUpdateEvent {
  return JSON.parse(record.json) as TaskArtifactUpdateEvent;
}

/** Whether a record has the content of a stored one. Times and ids of messages are new in each run. */
function isRepeated(stored: NewRecord, record: NewRecord, repeatable: LostEvents["repeatable"]): boolean {
  if (stored.kind !== record.kind) return false;
  if (stored.json === record.json) return true;
  if (repeatable !== undefined) return isRepeated(repeatable(stored), repeatable(record), undefined);
  return stored.kind === "statusUpdate" && contentOf(stored) === contentOf(record);
}

function contentOf(record: NewRecord): string {
  const { statusUpdate } = eventOf(record);
  if (statusUpdate === undefined) return "";
  const { timestamp: _, message, ...status } = statusUpdate.status;
  const { messageId: __, ...content } = message ?? {};
  return JSON.stringify({ ...statusUpdate, status: { ...status, content } });
}
