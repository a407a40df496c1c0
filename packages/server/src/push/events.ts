import { wrapped } from "@parley/a2a/internal/base/json-text";
import {
  A2AError,
  countsInGeneration,
  eventOf,
  isTaskState,
  stateKinds,
  type LogRecord,
  type StreamResponse,
  TaskFold,
  type Artifact,
  type TaskArtifactUpdateEvent,
} from "@parley/a2a/internal/model/index";
import { Payload, TextPayload } from "@parley/a2a/internal/protocol/index";
import { roomless, taskJson, type Room, type Snapshot, type Store, type TaskKey, recordBytes } from "../store/index.ts";
import type { PushOptions } from "./port.ts";
import type { Position, StoredConfig } from "./stored.ts";
import { updateJson } from "../store/json.ts";

/* Finds the next event of a config in the log of its task (docs/decisions/webhooks.md). */

/** The next event to deliver: a status, an artifact, or the whole task. */
export interface PushEvent {
  /** The `seq` of its record. */
  readonly seq: number;
  /** The generation of the task at this event. `undefined`: unknown. */
  readonly generation: number | undefined;
  readonly payload: Payload<StreamResponse>;
  /** Size in bytes of content that was left out, because it would be too large. Absent: nothing was left out. */
  readonly left?: number | undefined;
  /** W3C `traceparent` of the call that caused the event. */
  readonly trace: string | undefined;
}

/** The next step for a config, as found in the log. */
export type Next =
  /** The task no longer exists. */
  | { readonly kind: "gone" }
  /** The log changed while it was read. */
  | { readonly kind: "again" }
  /** There is no event up to the end of the log, which is at `position`. */
  | { readonly kind: "none"; readonly position: Position }
  /** An event. `position`: the config's position after this event. `last`: the log has no later event. */
  | { readonly kind: "event"; readonly event: PushEvent; readonly position: Position; readonly last: boolean };

/** The store to read events from, and the policy that selects the events to send. */
export interface EventSource {
  readonly store: Pick<Store, "read" | "load">;
  readonly policy: NonNullable<PushOptions["events"]>;
  /** Largest body in bytes. Larger content is not collected. */
  readonly bodyBytes: number;
  /** Whether adjacent texts of an artifact are merged into one part. */
  readonly mergeTextParts: boolean;
  readonly room: Room;
}

/** A page of this size needs no reservation. */
const page = { limit: 256, bytes: roomless };

/** The next event of a config. `sends`: whether the config's protocol version sends single events or the whole task. */
export async function nextEvent(
  source: EventSource,
  task: TaskKey,
  config: StoredConfig,
  sends: "event" | "task",
): Promise<Next> {
  const open = new OpenArtifacts(config);
  let at: Position = positionOf(config);
  let found: { readonly record: LogRecord; readonly before: Position } | undefined;
  for (;;) {
    const read = await source.store.read(task, task.taskId, { after: at.cursor, ...page, room: source.room });
    if (read === undefined) return { kind: "gone" };
    const { records, head } = read;
    if (head.seq > at.cursor && head.firstSeq > at.cursor + 1) {
      return found === undefined ? whole(source, task) : { kind: "again" };
    }
    // The head has the generation of the last record, from which the generations of earlier records follow.
    if (at.generation === undefined && (records.at(-1)?.seq ?? at.cursor) === head.seq) {
      at = { ...at, generation: head.generation - records.filter(({ kind }) => countsInGeneration(kind)).length };
    }
    for (const record of records) {
      if (selects(source.policy, record, at.state)) {
        if (sends === "task") return whole(source, task, record);
        if (found !== undefined) return eventAt(source, task, { ...found, position: at, last: false });
        found = { record, before: at };
      }
      at = { ...after(at, record), ...open.note(record) };
    }
    const isEnd = records.length === 0 || at.cursor === head.seq;
    if (found !== undefined) return eventAt(source, task, { ...found, position: at, last: isEnd });
    if (isEnd) return { kind: "none", position: at };
  }
}

/** Reads one event again, by its `seq`. The position of the config does not change. */
export async function eventAgain(
  source: EventSource,
  task: TaskKey,
  config: StoredConfig,
  { seq, sends }: { readonly seq: number; readonly sends: "event" | "task" },
): Promise<Next> {
  const position = positionOf(config);
  const read = await source.store.read(task, task.taskId, { after: seq - 1, limit: 1, room: source.room });
  if (read === undefined) return { kind: "gone" };
  const [record] = read.records;
  if (record?.seq !== seq || sends === "task") {
    const next = await whole(source, task, record);
    return next.kind === "event" ? { ...next, event: { ...next.event, seq }, position, last: false } : next;
  }
  // The chunks of the event's artifact may start anywhere in the earlier log.
  const before = { cursor: seq - 1, chunks: 0 };
  return eventAt(source, task, { record, before, position, last: false });
}

function positionOf({ cursor, state, generation, chunks }: StoredConfig): Position {
  return { cursor, state, generation, chunks };
}

function after(at: Position, { seq, state, kind }: LogRecord): Position {
  const generation = at.generation === undefined ? undefined : at.generation + Number(countsInGeneration(kind));
  return { ...at, cursor: seq, state: state ?? at.state, generation };
}

/** Whether a record is delivered. The user's messages are not (§3.1.2). `before`: the state of the task before the record. */
function selects(policy: EventSource["policy"], record: LogRecord, before: string | undefined): boolean {
  const { kind, state } = record;
  if (kind === "message") return false;
  if (policy === "all") return true;
  if (policy === "changes") {
    if (kind === "artifactUpdate") return updateJson.read(record.json).lastChunk === true;
    return kind === "statusUpdate" && (state !== before || (isTaskState(state) && stateKinds[state] !== "active"));
  }
  try {
    return policy(eventOf(record));
  } catch {
    // Deliver the event, which would otherwise be lost.
    return true;
  }
}

/** The current task as an event that replaces all events so far. `cause`: the record that triggers this event. */
async function whole(source: EventSource, task: TaskKey, cause?: LogRecord): Promise<Next> {
  const { store, mergeTextParts, room } = source;
  let snapshot: Snapshot | undefined;
  let left: number | undefined;
  try {
    snapshot = await store.load(task, task.taskId, { artifacts: true, mergeTextParts, room });
  } catch (error) {
    // If the store cannot return the task as one text, deliver it without its content.
    if (!(error instanceof A2AError && error.code === "UnsupportedOperation")) throw error;
    snapshot = await store.load(task, task.taskId, { artifacts: false, history: 0, room });
    left = snapshot?.head.bytes;
  }
  if (snapshot === undefined) return { kind: "gone" };
  const { seq, state, generation } = snapshot.head;
  const payload = new TextPayload<StreamResponse>(wrapped("task", taskJson(snapshot)));
  const event = { payload, left, seq, generation, trace: cause?.trace };
  return { kind: "event", event, position: { cursor: seq, state, generation }, last: true };
}

interface Found {
  readonly record: LogRecord;
  /** The position before the event, and after it. */
  readonly before: Position;
  readonly position: Position;
  readonly last: boolean;
}

async function eventAt(source: EventSource, task: TaskKey, { record, before, position, last }: Found): Promise<Next> {
  const { seq, trace, kind, json } = record;
  const about = { seq, trace, generation: after(before, record).generation };
  if (source.policy !== "changes" || kind !== "artifactUpdate" || updateJson.read(record.json).append !== true) {
    const payload = new TextPayload<StreamResponse>(wrapped(kind, json));
    return { kind: "event", event: { ...about, payload }, position, last };
  }
  const artifact = await wholeArtifact(source, task, record, before.chunks ?? 0);
  if (artifact === undefined) return { kind: "again" };
  const payload = new Payload<StreamResponse>({ artifactUpdate: artifact.update });
  return { kind: "event", event: { ...about, payload, left: artifact.left }, position, last };
}

/* Artifacts in chunks: the last chunk sends the whole artifact. */

/** Maximum artifacts whose start is remembered. If there are more, only the oldest start is known. */
const maxOpen = 1000;

/**
 * Tracks where the oldest incomplete artifact starts, so that its chunks need not be searched in the whole log. The result may be too
 * early, but never too late.
 */
export class OpenArtifacts {
  /** Incomplete artifacts that began after the cursor. Maps each to the `seq` before its first chunk. */
  readonly #begun = new Map<string, number>();
  /** The `seq` before the first chunk of the incomplete artifacts that began before the cursor. */
  #before: number;
  #mayHaveBefore: boolean;

  constructor({ cursor, chunks = 0 }: Pick<StoredConfig, "cursor" | "chunks">) {
    this.#before = chunks;
    this.#mayHaveBefore = chunks < cursor;
  }

  /** Adds a record. Returns the new value of `chunks` in the position. */
  note(record: LogRecord): { readonly chunks: number } {
    if (record.kind === "artifactUpdate") this.#update(record);
    if (this.#mayHaveBefore) return { chunks: this.#before };
    return { chunks: this.#oldest ?? record.seq };
  }

  /** The artifact that was added first. */
  get #oldest(): number | undefined {
    return this.#begun.values().next().value;
  }

  #update(record: LogRecord): void {
    const { artifact, append, lastChunk } = updateJson.read(record.json);
    const { artifactId } = artifact;
    const before = record.seq - 1;
    if (lastChunk === true) this.#begun.delete(artifactId);
    else if (append !== true && !this.#begun.has(artifactId)) {
      if (this.#begun.size < maxOpen) this.#begun.set(artifactId, before);
      else if (!this.#mayHaveBefore) [this.#before, this.#mayHaveBefore] = [this.#oldest ?? before, true];
    }
  }
}

/** An artifact with all of its chunks. */
interface WholeArtifact {
  readonly update: TaskArtifactUpdateEvent;
  /** Size in bytes of parts that were left out, because they exceed the largest body. Absent: nothing was left out. */
  readonly left?: number;
}

interface Reading {
  readonly store: Pick<Store, "read">;
  readonly bodyBytes: number;
  readonly mergeTextParts: boolean;
  readonly room: Room;
}

/** The artifact that `last` completes. Its first chunk comes after `from`. `undefined`: the log was compacted during the read. */
export async function wholeArtifact(
  { store, bodyBytes, mergeTextParts, room }: Reading,
  task: TaskKey,
  last: LogRecord,
  from: number,
): Promise<WholeArtifact | undefined> {
  const end = updateJson.read(last.json);
  const { taskId, contextId, metadata } = end;
  const newFold = (): TaskFold =>
    new TaskFold({ id: taskId, status: { state: "TASK_STATE_WORKING" } }, { mergeTextParts });
  let fold = newFold();
  let bytes = 0;
  for (let after = from; after < last.seq;) {
    const kinds = ["artifactUpdate"] as const;
    const page = await store.read(task, task.taskId, { after, limit: 256, bytes: roomless, kinds, room });
    if (page === undefined || page.head.firstSeq > after + 1 || page.records.length === 0) return undefined;
    for (const record of page.records) {
      after = record.seq;
      if (after > last.seq) break;
      const update = updateJson.read(record.json);
      if (update.artifact.artifactId !== end.artifact.artifactId) continue;
      if (update.append !== true) [fold, bytes] = [newFold(), 0];
      bytes += recordBytes(record);
      // An artifact that is too large is only counted.
      const artifact: Artifact = bytes > bodyBytes ? { ...update.artifact, parts: [] } : update.artifact;
      fold.apply({ artifactUpdate: { ...update, artifact } });
    }
  }
  const artifact = fold.snapshot().artifacts?.[0] ?? end.artifact;
  const update = { taskId, contextId, artifact, lastChunk: true, ...(metadata !== undefined && { metadata }) };
  return bytes > bodyBytes ? { update, left: bytes } : { update };
}
