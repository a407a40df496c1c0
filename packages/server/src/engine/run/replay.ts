import { withoutKeys } from "../../blobs/ref.ts";
import { eventOf, TaskFold, type LogRecord, type NewRecord } from "@parley/a2a/internal/model/index";
import type { ArtifactEvent } from "@parley/a2a/internal/protocol/index";
import type { Store, TaskKey } from "../../store/index.ts";
import type { Additions } from "../log/index.ts";
import { exceeds } from "../shared/bytes.ts";
import { updateJson } from "../../store/json.ts";

const pageSize = 256;

/** A range of events that do not count: `seq` of the first and of the last event. */
export type LostRange = readonly [first: number, last: number];

interface EarlierEvents {
  readonly store: Pick<Store, "read">;
  readonly task: TaskKey;
  readonly turn: number;
  /** The last turn whose events are compared: later than `turn` if the run resumes an earlier turn. */
  readonly last: number;
  /** `seq` of the turn's message. */
  readonly after: number;
  /** How many events of the turn are before its last checkpoint. */
  readonly skip: number;
  /** Ranges after the checkpoint whose events do not count. */
  readonly lost: readonly LostRange[];
  /** Removes the parts of a record that may differ in a repeated run. */
  readonly repeatable: ((record: NewRecord) => NewRecord) | undefined;
}

interface Compared {
  /** How many of the first records are already stored. */
  readonly repeated: number;
  /** The other records, to be stored. */
  readonly added: readonly NewRecord[];
}

/**
 * Compares the events of a resumed run with the events that the lost run had stored after its last checkpoint. Equal events are not
 * stored again. From the first difference, all events are new, and the remaining events of the lost run no longer count.
 */
export class Replay {
  readonly #store: Pick<Store, "read">;
  readonly #task: TaskKey;
  readonly #turn: number;
  readonly #last: number;
  readonly #repeatable: EarlierEvents["repeatable"];
  readonly #ranges: readonly LostRange[];
  #skip: number;
  /** `seq` of the last record that was read, of the last that was compared (`#at`), and of the last that was repeated (`#repeated`). */
  #after: number;
  #at: number;
  #repeated: number;
  /** The last `seq` of the log when this run first read the log. Later records belong to this run. */
  #end = Infinity;
  #page: LogRecord[] = [];
  #over = false;
  #passed = 0;
  #tail: LostRange | undefined;
  readonly #lost: LostEvents;

  constructor({ store, task, turn, last, after, skip, lost, repeatable }: EarlierEvents) {
    this.#repeatable = repeatable;
    this.#store = store;
    this.#task = task;
    this.#turn = turn;
    this.#last = last;
    this.#after = this.#at = this.#repeated = after;
    this.#skip = skip;
    this.#ranges = lost;
    this.#lost = new LostEvents(store, task);
  }

  get over(): boolean {
    return this.#over;
  }

  /** `seq` of the last compared record. */
  get at(): number {
    return this.#at;
  }

  /** The events that this run did not repeat, once the comparison is over. `undefined`: all were repeated. */
  get tail(): LostRange | undefined {
    return this.#tail;
  }

  /** The events that do not count, in the compared part of the log. */
  get lost(): LostEvents {
    return this.#lost;
  }

  /** The number of skipped events since the last call, which do not count. */
  takePassed(): number {
    const passed = this.#passed;
    this.#passed = 0;
    return passed;
  }

  /** `additions`: the extensions' additions to the records. If the task had no room, a record was stored without its addition. */
  async compare(records: readonly NewRecord[], additions: Additions | undefined): Promise<Compared> {
    for (const [at, given] of records.entries()) {
      const stored = await this.#next();
      const record = await this.#lost.replaceIn(given);
      if (stored === undefined || !this.#isStored(stored, record, additions?.bareOf(given))) {
        this.#over = true;
        if (stored !== undefined) await this.#loseFrom(stored);
        return { repeated: at, added: await this.#lost.replaceInAll([record, ...records.slice(at + 1)]) };
      }
      this.#repeated = stored.seq;
    }
    return { repeated: records.length, added: [] };
  }

  /** Called when the run ends. Events that the run has not repeated do not count. */
  async end(): Promise<void> {
    const stored = this.#over ? undefined : await this.#next();
    this.#over = true;
    if (stored !== undefined) await this.#loseFrom(stored);
  }

  #isStored(stored: LogRecord, record: NewRecord, bare: NewRecord | undefined): boolean {
    return (
      isRepeated(stored, record, this.#repeatable) || (bare !== undefined && isRepeated(stored, bare, this.#repeatable))
    );
  }

  async #loseFrom(first: LogRecord): Promise<void> {
    for (let record: LogRecord | undefined = first; record !== undefined; record = await this.#next()) {
      this.#pass(record);
      this.#tail = [first.seq, record.seq];
    }
  }

  #pass(record: LogRecord): void {
    this.#passed += 1;
    this.#lost.add(record, this.#repeated);
  }

  async #next(): Promise<LogRecord | undefined> {
    for (;;) {
      const record = this.#page.shift() ?? (await this.#read());
      if (record === undefined) return undefined;
      this.#at = record.seq;
      // Events of other agents are not repeated, because delegations continue where they stopped.
      if (record.actor !== "agent" || record.turn < this.#turn || record.turn > this.#last) continue;
      if (this.#skip > 0) {
        this.#skip -= 1;
        this.#repeated = record.seq;
      } else if (this.#ranges.some(([first, last]) => first <= record.seq && record.seq <= last)) this.#pass(record);
      else return record;
    }
  }

  async #read(): Promise<LogRecord | undefined> {
    if (this.#after >= this.#end) return undefined;
    const page = await this.#store.read(this.#task, this.#task.taskId, {
      after: this.#after,
      limit: pageSize,
      kinds: ["statusUpdate", "artifactUpdate"],
    });
    const last = page?.records.at(-1);
    if (page === undefined || last === undefined) return undefined;
    this.#after = last.seq;
    this.#end = page.head.seq;
    this.#page = [...page.records];
    return this.#page.shift();
  }
}

/**
 * Events of a lost run that a later run did not repeat. Their statuses stay as history, but their chunks do not count: the next
 * chunk of such an artifact replaces the artifact by its content before the first difference, followed by that chunk.
 */
export class LostEvents {
  readonly #store: Pick<Store, "read">;
  readonly #task: TaskKey;
  /** Artifacts that still contain lost chunks, with the `seq` of the last record before these chunks. */
  readonly #artifacts = new Map<string, number>();

  constructor(store: Pick<Store, "read">, task: TaskKey) {
    this.#store = store;
    this.#task = task;
  }

  get artifacts(): Iterable<string> {
    return this.#artifacts.keys();
  }

  add(record: LogRecord, from: number): void {
    if (record.kind !== "artifactUpdate") return;
    const { artifactId } = updateJson.read(record.json).artifact;
    if (!this.#artifacts.has(artifactId)) this.#artifacts.set(artifactId, from);
  }

  /** Returns the records. If an artifact has lost chunks, its next chunk replaces the artifact instead of appending to it. */
  async replaceInAll(records: readonly NewRecord[]): Promise<readonly NewRecord[]> {
    if (this.#artifacts.size === 0) return records;
    const replaced: NewRecord[] = [];
    for (const record of records) replaced.push(await this.replaceIn(record));
    return replaced;
  }

  async replaceIn(record: NewRecord): Promise<NewRecord> {
    return this.#artifacts.size === 0 || record.kind !== "artifactUpdate" ? record : this.#replace(record);
  }

  async #replace(record: NewRecord): Promise<NewRecord> {
    const { append, ...update } = updateJson.read(record.json);
    const { artifactId } = update.artifact;
    const from = this.#artifacts.get(artifactId);
    this.#artifacts.delete(artifactId);
    if (from === undefined || append !== true) return record;
    const { fold } = await this.#foldOf(artifactId, from);
    fold.apply({ artifactUpdate: { ...update, append } });
    const artifact = fold.snapshot().artifacts?.[0] ?? update.artifact;
    return { ...record, json: JSON.stringify({ ...update, artifact }) };
  }

  /**
   * The artifacts that still contain lost chunks, with their content before the first difference, which this run has repeated without adding
   * more. An artifact that only the lost run wrote stays, because no event deletes an artifact.
   */
  async restored(): Promise<readonly ArtifactEvent[]> {
    const events: ArtifactEvent[] = [];
    for (const [artifactId, from] of this.#artifacts) {
      const { fold, lastChunk } = await this.#foldOf(artifactId, from);
      const [artifact] = fold.snapshot().artifacts ?? [];
      if (artifact !== undefined) events.push({ kind: "artifact", artifact, ...(lastChunk && { lastChunk }) });
    }
    this.#artifacts.clear();
    return events;
  }

  /** An artifact with its content before the first difference, and the `lastChunk` of its newest chunk before that difference. */
  async #foldOf(artifactId: string, from: number): Promise<{ readonly fold: TaskFold; readonly lastChunk: boolean }> {
    const { taskId } = this.#task;
    const fold = new TaskFold({ id: taskId, contextId: "", status: { state: "TASK_STATE_WORKING" } });
    let lastChunk = false;
    for (let after = 0; after < from;) {
      const page = await this.#store.read(this.#task, taskId, { after, limit: pageSize, kinds: ["artifactUpdate"] });
      const records = page?.records.filter(({ seq }) => seq <= from) ?? [];
      for (const record of records) {
        const artifactUpdate = updateJson.read(record.json);
        if (artifactUpdate.artifact.artifactId !== artifactId) continue;
        fold.apply({ artifactUpdate });
        lastChunk = artifactUpdate.lastChunk === true;
      }
      after = records.at(-1)?.seq ?? from;
    }
    return { fold, lastChunk };
  }
}

/** An artifact as one event, or as one event for each part if that would be too large. Each part fits, because it arrived as a chunk. */
export function piecesOf(event: ArtifactEvent, bytes: number): readonly ArtifactEvent[] {
  const { parts, artifactId, ...about } = event.artifact;
  // The record also has the ids of the task and context.
  if (!exceeds(JSON.stringify(event), bytes - 1024)) return [event];
  return parts.map((part, at) => ({
    ...event,
    artifact: { artifactId, parts: [part], ...(at === 0 && about) },
    append: at > 0,
    lastChunk: event.lastChunk === true && at === parts.length - 1,
  }));
}

/** Whether a record has the content of a stored record, apart from times and message ids, which are new in each run. */
function isRepeated(stored: NewRecord, record: NewRecord, repeatable: EarlierEvents["repeatable"]): boolean {
  if (stored.kind !== record.kind) return false;
  if (stored.json === record.json) return true;
  const [one, other] = [withoutKeys(stored.json), withoutKeys(record.json)];
  if (one === other) return true;
  // The same file gets another key in each attempt, which the comparison must ignore.
  if (one !== stored.json || other !== record.json) {
    return isRepeated({ ...stored, json: one }, { ...record, json: other }, repeatable);
  }
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
