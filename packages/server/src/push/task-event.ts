import { wrapped } from "@parley/a2a/internal/base/json-text";
import { A2AError, type StreamResponse } from "@parley/a2a/internal/model/index";
import { TextPayload } from "@parley/a2a/internal/protocol/index";
import { taskJson, type Snapshot, type TaskHead, type TaskKey } from "../store/index.ts";
import type { EventSource, PushEvent } from "./events.ts";

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
