import type { Task } from "@parley/a2a";
import { textOf } from "@parley/a2a/model";
import { line } from "@parley/a2a/protocol";
import type { BridgeDeps, CallerView } from "./agent.ts";
import { stateName } from "./results.ts";

/** The members of a task in this extension. */
export interface TaskView {
  readonly taskId: string;
  readonly status: "working" | "input_required" | "completed" | "cancelled";
  readonly statusMessage?: string;
  readonly createdAt: string;
  readonly lastUpdatedAt: string;
  readonly ttlMs: null;
  readonly pollIntervalMs: number;
}

const statuses: Readonly<Record<Task["status"]["state"], TaskView["status"]>> = {
  TASK_STATE_SUBMITTED: "working",
  TASK_STATE_WORKING: "working",
  TASK_STATE_INPUT_REQUIRED: "input_required",
  TASK_STATE_AUTH_REQUIRED: "input_required",
  TASK_STATE_COMPLETED: "completed",
  // `failed` is only for JSON-RPC errors. Here the result reports that the task failed.
  TASK_STATE_FAILED: "completed",
  TASK_STATE_REJECTED: "completed",
  TASK_STATE_CANCELED: "cancelled",
};

/** A task in the format of this extension. */
export async function taskView(
  { deps, view }: { readonly deps: BridgeDeps; readonly view: CallerView },
  task: Task,
): Promise<TaskView> {
  const { state, message, timestamp = new Date(deps.clock.now()).toISOString() } = task.status;
  const said = message === undefined ? stateName(task) : line(textOf(message), 1000);
  return {
    taskId: await view.handles.seal("task", task.id),
    status: statuses[state],
    statusMessage: said,
    // A2A has no creation time.
    createdAt: timestamp,
    lastUpdatedAt: timestamp,
    ttlMs: null,
    pollIntervalMs: deps.pollIntervalMs,
  };
}
