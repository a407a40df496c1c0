import { wrapped } from "@parley/a2a/internal/base/json-text";
import {
  A2AError,
  countsInGeneration,
  eventOf,
  isTaskState,
  type LogRecord,
  stateKinds,
  type StreamResponse,
  type TaskArtifactUpdateEvent,
} from "@parley/a2a/internal/model/index";
import { Payload, TextPayload } from "@parley/a2a/internal/protocol/index";
import {
  type LogPage,
  type Room,
  roomless,
  type Snapshot,
  type Store,
  type TaskHead,
  taskJson,
  type TaskKey,
} from "../store/index.ts";
import { beginsArtifact, OpenArtifacts, wholeArtifact } from "./artifacts.ts";
import type { PushOptions } from "./port.ts";
import type { Position, StoredConfig } from "./stored.ts";

/* Finds the next event of a config in the log of its task (docs/decisions/webhooks.md). */

/** What is delivered next. */
export interface PushEvent {
  /** The `seq` of the log that it tells about. */
  readonly seq: number;
  /** The generation of the task at this event. Absent: it is not known any more. */
  readonly generation?: number;
  /** A status, an artifact, or the whole task. */
  readonly payload: Payload<StreamResponse>;
  /** Set where content was left out already, because it would be too large: its size in bytes. */
  readonly left?: number;
  /** W3C `traceparent` of the call that caused it. */
  readonly trace?: string;
}

/** What the log has for a config. */
export type Next =
  /** There is no such task any more. */
  | { readonly kind: "gone" }
  /** The log changed while it was read. */
  | { readonly kind: "again" }
  /** Nothing up to the end of the log, at `position`. */
  | { readonly kind: "none"; readonly position: Position }
  /** An event. `position`: where the config is after it. `last`: nothing else is in the log. */
  | { readonly kind: "event"; readonly event: PushEvent; readonly position: Position; readonly last: boolean };

/** What is needed to find events. */
export interface EventSource {
  readonly store: Pick<Store, "read" | "load">;
  readonly policy: NonNullable<PushOptions["events"]>;
  /** Largest body in bytes. Larger content is not collected. */
  readonly bodyBytes: number;
  /** Whether adjacent texts of an artifact are one part in a task. */
  readonly mergeTextParts: boolean;
  /** Memory for what is read. */
  readonly room: Room;
}

/** Records of a page. A page of this size needs no reservation. */
const page = { limit: 256, bytes: roomless };

/** The next event of a config. `sends`: what the version of the config sends. */
export async function nextEvent(
  source: EventSource,
  task: TaskKey,
  config: StoredConfig,
  sends: "event" | "task",
): Promise<Next> {
  const open = new OpenArtifacts(config);
  let at: Position = positionOf(config);
  let found: LogRecord | undefined;
  let before = at;
  for (;;) {
    const read = await source.store.read(task, task.taskId, { after: at.cursor, ...page, room: source.room });
    if (read === undefined) return { kind: "gone" };
    const { records, head } = read;
    if (head.seq > at.cursor && head.firstSeq > at.cursor + 1) {
      return found === undefined ? whole(source, task) : { kind: "again" };
    }
    at = withGeneration(at, read);
    for (const record of records) {
      if (selects(source.policy, record, at.state)) {
        if (sends === "task") return whole(source, task, record);
        if (found !== undefined) return eventAt(source, task, found, { before, position: at, last: false });
        [found, before] = [record, at];
      }
      at = { ...after(at, record), ...open.note(record) };
    }
    const isEnd = records.length === 0 || at.cursor === head.seq;
    if (found !== undefined) return eventAt(source, task, found, { before, position: at, last: isEnd });
    if (isEnd) return { kind: "none", position: at };
  }
}

/** One event again, by its `seq`. The position is that of the config: it does not move. */
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
  // Its chunks may begin anywhere before it.
  return eventAt(source, task, record, { before: { cursor: seq - 1, chunks: 0 }, position, last: false });
}

function positionOf({ cursor, state, generation, chunks }: StoredConfig): Position {
  return {
    cursor,
    ...(state !== undefined && { state }),
    ...(generation !== undefined && { generation }),
    ...(chunks !== undefined && { chunks }),
  };
}

function after(at: Position, { seq, state, kind }: LogRecord): Position {
  const generation = at.generation === undefined ? undefined : at.generation + Number(countsInGeneration(kind));
  return {
    ...at,
    cursor: seq,
    ...(state !== undefined && { state }),
    ...(generation !== undefined && { generation }),
  };
}

/** The head tells the generation at its own record, so a page that ends there tells that of each of its records. */
function withGeneration(at: Position, { records, head }: LogPage): Position {
  if (at.generation !== undefined || (records.at(-1)?.seq ?? at.cursor) !== head.seq) return at;
  return { ...at, generation: head.generation - records.filter(({ kind }) => countsInGeneration(kind)).length };
}

/** Whether a record is delivered. `before`: the state of the task before it. Messages of the user are not (§3.1.2). */
function selects(policy: EventSource["policy"], record: LogRecord, before: string | undefined): boolean {
  const { kind, state } = record;
  if (kind === "message") return false;
  if (policy === "all") return true;
  if (typeof policy === "function") return chosen(policy, record);
  if (kind === "artifactUpdate") return updateOf(record).lastChunk === true;
  return kind === "statusUpdate" && (state !== before || (isTaskState(state) && stateKinds[state] !== "active"));
}

/** An event that the policy fails at is sent: it would be lost otherwise. */
function chosen(policy: (event: StreamResponse) => boolean, record: LogRecord): boolean {
  try {
    return policy(eventOf(record));
  } catch {
    return true;
  }
}

function updateOf(record: LogRecord): TaskArtifactUpdateEvent {
  return JSON.parse(record.json) as TaskArtifactUpdateEvent;
}

/** The task as it is, in place of all events up to now. `cause`: the record that it is sent for, where there is one. */
async function whole(source: EventSource, task: TaskKey, cause?: LogRecord): Promise<Next> {
  const found = await taskEvent(source, task);
  if (found === undefined) return { kind: "gone" };
  const { head, ...event } = found;
  const { seq, generation } = head;
  return {
    kind: "event",
    event: { ...event, seq, generation, ...(cause?.trace !== undefined && { trace: cause.trace }) },
    position: endOf(head),
    last: true,
  };
}

function endOf({ seq, state, generation }: TaskHead): Position {
  return { cursor: seq, state, generation };
}

/** The event of a record. `before`: the position before it. */
async function eventAt(
  source: EventSource,
  task: TaskKey,
  record: LogRecord,
  { before, position, last }: { readonly before: Position; readonly position: Position; readonly last: boolean },
): Promise<Next> {
  const { generation } = after(before, record);
  const about = {
    seq: record.seq,
    ...(generation !== undefined && { generation }),
    ...(record.trace !== undefined && { trace: record.trace }),
  };
  if (source.policy !== "changes" || record.kind !== "artifactUpdate" || beginsArtifact(updateOf(record))) {
    const payload = new TextPayload<StreamResponse>(wrapped(record.kind, record.json));
    return { kind: "event", event: { ...about, payload }, position, last };
  }
  const artifact = await wholeArtifact(source, task, record, before.chunks ?? 0);
  if (artifact === undefined) return { kind: "again" };
  const event = { ...about, payload: new Payload<StreamResponse>({ artifactUpdate: artifact.update }) };
  return {
    kind: "event",
    event: artifact.left === undefined ? event : { ...event, left: artifact.left },
    position,
    last,
  };
}

type TaskSource = Pick<EventSource, "store" | "mergeTextParts" | "room">;

/** The task as it is now, as an event. `undefined`: there is no such task. */
export async function taskEvent(
  source: TaskSource,
  task: TaskKey,
): Promise<(Pick<PushEvent, "payload" | "left"> & { readonly head: TaskHead }) | undefined> {
  const snapshot = await load(source, task);
  if (snapshot === undefined) return undefined;
  const { head, left } = snapshot;
  const payload = new TextPayload<StreamResponse>(wrapped("task", taskJson(snapshot.task)));
  return { head, payload, ...(left !== undefined && { left }) };
}

interface Loaded {
  readonly task: Snapshot;
  readonly head: TaskHead;
  readonly left?: number;
}

/** Without its content, where the store cannot give it as one text. */
async function load({ store, mergeTextParts, room }: TaskSource, key: TaskKey): Promise<Loaded | undefined> {
  try {
    const task = await store.load(key, key.taskId, { artifacts: true, mergeTextParts, room });
    return task && { task, head: task.head };
  } catch (error) {
    if (!(error instanceof A2AError && error.code === "UnsupportedOperation")) throw error;
    const task = await store.load(key, key.taskId, { artifacts: false, history: 0, room });
    return task && { task, head: task.head, left: task.head.bytes };
  }
}
