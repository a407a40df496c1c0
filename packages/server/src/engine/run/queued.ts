import type { Message, NewRecord } from "@parley/a2a/internal/model/index";
import { queueFeature, type FeatureEffect, type StoredRun, type TaskHead, type TaskKey } from "../../store/index.ts";
import { taskRecord, type StoredCall } from "../log/index.ts";

/* Tasks that wait for a process with room for their run. */

/** The key of their row. */
export const queueKey = "run";

/** What their row says: the turn that is to begin. */
export type QueuedRun = Pick<StoredRun, "turn" | "input">;

/** Whether a task waits for a process with room. Nothing else leaves a task submitted without a run. */
export function isQueued({ state, run }: Pick<TaskHead, "state" | "run">): boolean {
  return state === "TASK_STATE_SUBMITTED" && run === undefined;
}

/** Puts a task into the queue. `place`: those with a lower one come first, then those that came first. */
export function queueRow({ turn, input }: QueuedRun, place: number): FeatureEffect {
  const value = JSON.stringify({ turn, input });
  return { effect: "feature", op: "set", feature: queueFeature, key: queueKey, value, due: place };
}

/** The first record of a task whose agent is not called yet. */
export function queuedTask(
  { taskId }: TaskKey,
  contextId: string,
  message: Message,
  call: StoredCall,
  time: number,
): NewRecord {
  const { extensions, trace } = call;
  return taskRecord(
    { taskId, contextId, turn: 1, attempt: 1, extensions, trace },
    "TASK_STATE_SUBMITTED",
    message,
    call,
    time,
  );
}
