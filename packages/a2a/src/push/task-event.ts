import { wrapped } from "../base/json-text.ts";
import { A2AError, type StreamResponse } from "../model/index.ts";
import { TextPayload } from "../protocol/index.ts";
import { taskJson, type Room, type Snapshot, type Store, type TaskHead, type TaskKey } from "../store/index.ts";
import type { PushEvent } from "./events.ts";

/** The task as it is now, as an event. `undefined`: there is no such task. */
export async function taskEvent(
  store: Pick<Store, "load">,
  task: TaskKey,
  room: Room,
): Promise<(Pick<PushEvent, "payload" | "left"> & { readonly head: TaskHead }) | undefined> {
  const snapshot = await load(store, task, room);
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
async function load(store: Pick<Store, "load">, key: TaskKey, room: Room): Promise<Loaded | undefined> {
  try {
    const task = await store.load(key, key.taskId, { artifacts: true, room });
    return task && { task, head: task.head };
  } catch (error) {
    if (!(error instanceof A2AError && error.code === "UnsupportedOperation")) throw error;
    const task = await store.load(key, key.taskId, { artifacts: false, history: 0, room });
    return task && { task, head: task.head, left: task.head.bytes };
  }
}
