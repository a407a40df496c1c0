import { TaskFold, type Artifact, type TaskArtifactUpdateEvent } from "../model/index.ts";
import { PageBudget } from "./bounds.ts";
import type { SaidArtifact } from "./port.ts";

/*
 * Which messages and artifacts a conversation gives, the same in every store: the newest first, until one bound or the
 * other is reached, so that what is read is what was asked for however much there is.
 */

/** Where a record with messages stands, and how large it is. `task` is whatever the store knows a task by. */
export interface MessagePlace<TaskRef> {
  /** Its place in the conversation. */
  readonly place: number;
  /** When it was stored, in milliseconds since the Unix epoch. */
  readonly time: number;
  /** Its size in bytes of JSON. */
  readonly bytes: number;
  /** Of a direct reply, nothing. */
  readonly task: TaskRef | undefined;
  /** In the log of its task. */
  readonly seq: number;
}

/** Where a record of an artifact stands, and how large it is. */
export interface ChunkPlace {
  /** Number of the record in the log of its task. */
  readonly seq: number;
  /** When it was stored, in milliseconds since the Unix epoch. */
  readonly time: number;
  /** Its size in bytes of JSON. */
  readonly bytes: number;
}

/** The artifact records of one task, newest first. */
export interface Chunks {
  /** The next record; `undefined` where there is none. */
  peek(): ChunkPlace | undefined;
  /** JSON text of the one that `peek` gave; further ones of so many bytes in all may be read with it. */
  take(room: number): string;
}

/** What was picked. A greater `order` stands further back. */
export interface Picked {
  /** Of so many of the newest messages, in their order: when each was picked. */
  readonly messages: readonly number[];
  /** The artifacts. */
  readonly artifacts: readonly { readonly order: number; readonly entry: SaidArtifact }[];
}

interface Bounds {
  readonly limit: number;
  readonly bytes: number;
}

/** `messages` stand newest first; `chunks` are those of every task that artifacts are wanted of. */
export function pickNewest<TaskRef>(
  messages: readonly MessagePlace<TaskRef>[],
  chunks: ReadonlyMap<TaskRef, Chunks>,
  { limit, bytes }: Bounds,
): Picked {
  const budget = new PageBudget(bytes);
  const answered = placesOf(messages);
  const artifacts = new Map<string, Gathered>();
  const orders: number[] = [];
  let bounded = true;
  for (let order = 0; ; order += 1) {
    const message = messages[orders.length];
    const newest = newestOf(chunks, answered);
    if (newest !== undefined && (message === undefined || follows(newest, message))) {
      if (!budget.take(newest.chunk.bytes)) break;
      const update = JSON.parse(newest.from.take(budget.left)) as TaskArtifactUpdateEvent;
      const name = JSON.stringify([update.taskId, update.artifact.artifactId]);
      let gathered = artifacts.get(name);
      if (gathered === undefined) {
        if (orders.length + artifacts.size >= limit) break;
        gathered = { updates: [], whole: false, order, time: newest.chunk.time };
        artifacts.set(name, gathered);
      }
      gather(gathered, update, newest.chunk.time, order);
    } else {
      bounded = message !== undefined;
      if (message === undefined || orders.length + artifacts.size >= limit || !budget.take(message.bytes)) break;
      orders.push(order);
    }
  }
  const entries = [...artifacts.values()].map((gathered) => ({ order: gathered.order, entry: entryOf(gathered) }));
  // Where all was read, an artifact without a beginning is none: it is as little in the task.
  return { messages: orders, artifacts: bounded ? entries : entries.filter(({ entry }) => entry.cut !== true) };
}

interface Newest<TaskRef> {
  readonly task: TaskRef;
  readonly from: Chunks;
  readonly chunk: ChunkPlace;
  /** The place of what it answers. */
  readonly place: number;
}

interface Gathered {
  /** Newest first. */
  readonly updates: TaskArtifactUpdateEvent[];
  /** Whether its beginning is among them: what the log has of it before was replaced. */
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
  const { taskId } = updates[0] as TaskArtifactUpdateEvent;
  const fold = new TaskFold({ id: taskId, status: { state: "TASK_STATE_WORKING" } });
  updates.reverse().forEach((update, index) => {
    const { append, ...begins } = update;
    fold.apply({ artifactUpdate: index > 0 && append === true ? { ...begins, append } : begins });
  });
  const artifact = fold.snapshot().artifacts?.[0] as Artifact;
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

function newestOf<TaskRef>(
  chunks: ReadonlyMap<TaskRef, Chunks>,
  answered: ReadonlyMap<TaskRef, readonly MessagePlace<TaskRef>[]>,
): Newest<TaskRef> | undefined {
  let newest: Newest<TaskRef> | undefined;
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

/** Whether a chunk came after a message: within a task the log says so, else the time; of one moment, what it answers. */
function follows<TaskRef>({ task, chunk, place }: Newest<TaskRef>, message: MessagePlace<TaskRef>): boolean {
  if (task === message.task) return chunk.seq > message.seq;
  if (chunk.time !== message.time) return chunk.time > message.time;
  return place > message.place;
}

/** Puts what was picked into its order, oldest first. `said`: what each picked record holds, which can be several messages. */
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
