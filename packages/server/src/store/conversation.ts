import { TaskFold, type TaskArtifactUpdateEvent } from "@parley/a2a/internal/model/index";
import { PageBudget } from "./bounds.ts";
import type { SaidArtifact } from "./port.ts";
import { updateJson } from "./json.ts";

/*
 * Selects the messages and artifacts that a query of a conversation returns, the same in every store. The selection goes backwards from the
 * newest entry to a limit, so the cost does not depend on the length of the conversation.
 */

/** The position and size of a record with messages. `TaskRef` is how the store refers to a task. */
export interface MessagePlace<TaskRef> {
  /** The place of the record in the conversation. */
  readonly place: number;
  /** When the record was stored, in milliseconds since the Unix epoch. */
  readonly time: number;
  /** Its size in bytes of JSON. */
  readonly bytes: number;
  /** The task of the record. `undefined`: a direct reply, or the message that it answers. */
  readonly task: TaskRef | undefined;
  /** Number of the record in the log of its task. */
  readonly seq: number;
}

/** The position and size of a record of an artifact. */
export interface ChunkPlace {
  /** Number of the record in the log of its task. */
  readonly seq: number;
  /** When the record was stored, in milliseconds since the Unix epoch. */
  readonly time: number;
  /** Its size in bytes of JSON. */
  readonly bytes: number;
}

/** The artifact records of one task, newest first. `Wait`: the preparation of a store that reads asynchronously. */
export interface Chunks<Wait = never> {
  /** Called before `peek`, and before `take` with the same `room`. Returns the preparation. Absent in a store that reads synchronously. */
  ready?(room?: number): Wait | undefined;
  /** The next record; `undefined`: no more records. */
  peek(): ChunkPlace | undefined;
  /** JSON text of the record that `peek` returned. The store may read further records at the same time, up to `room` bytes in all. */
  take(room: number): string;
}

/** The selected entries. A greater `order` is further back in the conversation. */
export interface Picked {
  /** The `order` of each selected message, newest first. */
  readonly messages: readonly number[];
  /** The artifacts. */
  readonly artifacts: readonly { readonly order: number; readonly entry: SaidArtifact }[];
}

interface Bounds {
  readonly limit: number;
  readonly bytes: number;
}

/** Selects entries. `messages`: newest first. `chunks`: the chunks of each requested task. */
export function pickNewest<TaskRef>(
  messages: readonly MessagePlace<TaskRef>[],
  chunks: ReadonlyMap<TaskRef, Chunks>,
  bounds: Bounds,
): Picked {
  const step = pickNewestSteps(messages, chunks, bounds).next();
  if (step.done !== true) throw new TypeError("Chunks with ready() are read with pickNewestSteps()");
  return step.value;
}

/** Like `pickNewest`, for a store that reads asynchronously: yields each preparation before it continues. */
export function* pickNewestSteps<TaskRef, Wait>(
  messages: readonly MessagePlace<TaskRef>[],
  chunks: ReadonlyMap<TaskRef, Chunks<Wait>>,
  { limit, bytes }: Bounds,
): Generator<Wait, Picked, void> {
  const budget = new PageBudget(bytes);
  const answered = placesOf(messages);
  const artifacts = new Map<string, Gathered>();
  const orders: number[] = [];
  let bounded = true;
  for (let order = 0; ; order += 1) {
    const message = messages[orders.length];
    for (const from of chunks.values()) yield* waitFor(from);
    const newest = newestOf(chunks, answered);
    if (newest !== undefined && (message === undefined || follows(newest, message))) {
      if (!budget.take(newest.chunk.bytes)) break;
      yield* waitFor(newest.from, budget.left);
      const update = updateJson.read(newest.from.take(budget.left));
      const name = JSON.stringify([update.taskId, update.artifact.artifactId]);
      let gathered = artifacts.get(name);
      if (gathered === undefined) {
        if (orders.length + artifacts.size >= limit) break;
        gathered = { updates: [update], whole: update.append !== true, order, time: newest.chunk.time };
        artifacts.set(name, gathered);
      } else gather(gathered, update, newest.chunk.time, order);
    } else {
      bounded = message !== undefined;
      if (message === undefined || orders.length + artifacts.size >= limit || !budget.take(message.bytes)) break;
      orders.push(order);
    }
  }
  const entries = [...artifacts.values()].map((gathered) => ({ order: gathered.order, entry: entryOf(gathered) }));
  // If everything was read, an artifact without its beginning is not in the task either.
  return { messages: orders, artifacts: bounded ? entries : entries.filter(({ entry }) => entry.cut !== true) };
}

function* waitFor<Wait>(from: Chunks<Wait>, room?: number): Generator<Wait, void, void> {
  const wait = from.ready?.(room);
  if (wait !== undefined) yield wait;
}

interface Newest<TaskRef, Wait> {
  readonly task: TaskRef;
  readonly from: Chunks<Wait>;
  readonly chunk: ChunkPlace;
  /** The place of the message that the artifact answers. */
  readonly place: number;
}

interface Gathered {
  /** The updates of the artifact, newest first. */
  readonly updates: [TaskArtifactUpdateEvent, ...TaskArtifactUpdateEvent[]];
  /** Whether `updates` has the artifact's beginning, which replaced all earlier records of the artifact. */
  whole: boolean;
  order: number;
  time: number;
}

function gather(gathered: Gathered, update: TaskArtifactUpdateEvent, time: number, order: number): void {
  if (gathered.whole) return;
  gathered.updates.push(update);
  gathered.whole = update.append !== true;
  gathered.order = order;
  gathered.time = time;
}

function entryOf({ updates, whole, time }: Gathered): SaidArtifact {
  const [{ taskId, artifact: newest }] = updates;
  const fold = new TaskFold({ id: taskId, status: { state: "TASK_STATE_WORKING" } });
  updates.reverse().forEach((update, index) => {
    const { append, ...begins } = update;
    fold.apply({ artifactUpdate: index > 0 && append === true ? { ...begins, append } : begins });
  });
  const artifact = fold.snapshot().artifacts?.[0] ?? newest;
  return { time, taskId, artifact, ...(!whole && { cut: true as const }) };
}

/** The messages of each task, newest first. */
function placesOf<TaskRef>(
  messages: readonly MessagePlace<TaskRef>[],
): ReadonlyMap<TaskRef, readonly MessagePlace<TaskRef>[]> {
  const places = new Map<TaskRef, MessagePlace<TaskRef>[]>();
  for (const message of messages) {
    if (message.task === undefined) continue;
    const known = places.get(message.task);
    if (known === undefined) places.set(message.task, [message]);
    else known.push(message);
  }
  return places;
}

function newestOf<TaskRef, Wait>(
  chunks: ReadonlyMap<TaskRef, Chunks<Wait>>,
  answered: ReadonlyMap<TaskRef, readonly MessagePlace<TaskRef>[]>,
): Newest<TaskRef, Wait> | undefined {
  let newest: Newest<TaskRef, Wait> | undefined;
  for (const [task, from] of chunks) {
    const chunk = from.peek();
    if (chunk === undefined || (newest !== undefined && chunk.time < newest.chunk.time)) continue;
    const place = answered.get(task)?.find(({ seq }) => seq < chunk.seq)?.place ?? 0;
    if (newest === undefined || chunk.time > newest.chunk.time || place > newest.place) {
      newest = { task, from, chunk, place };
    }
  }
  return newest;
}

/** Whether a chunk came after a message: by the log within a task, otherwise by time, then by the message that it answers. */
function follows<TaskRef>(
  { task, chunk, place }: Omit<Newest<TaskRef, unknown>, "from">,
  message: MessagePlace<TaskRef>,
): boolean {
  if (task === message.task) return chunk.seq > message.seq;
  if (chunk.time !== message.time) return chunk.time > message.time;
  return place > message.place;
}

/** The selected entries, oldest first. `said`: the messages of each selected record, which can have several. */
export function inOrder<Said>(
  { messages, artifacts }: Picked,
  said: readonly (readonly Said[])[],
  limit: number,
): readonly (Said | SaidArtifact)[] {
  const all: { readonly order: number; readonly entries: readonly (Said | SaidArtifact)[] }[] = [
    ...messages.map((order, index) => ({ order, entries: said[index] ?? [] })),
    ...artifacts.map(({ order, entry }) => ({ order, entries: [entry] })),
  ];
  all.sort((a, b) => b.order - a.order);
  return all.flatMap(({ entries }) => entries).slice(-limit);
}
