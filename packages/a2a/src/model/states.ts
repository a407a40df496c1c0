import type { TaskState } from "./types.ts";

/** The life of a task as data (A2A 1.0 §4.1.3). */

export type StateKind = "active" | "interrupted" | "terminal";

/** What each state means for those who wait: active ones go on, interrupted ones want the caller, terminal ones are over. */
export const stateKinds: Readonly<Record<TaskState, StateKind>> = {
  TASK_STATE_SUBMITTED: "active",
  TASK_STATE_WORKING: "active",
  TASK_STATE_INPUT_REQUIRED: "interrupted",
  TASK_STATE_AUTH_REQUIRED: "interrupted",
  TASK_STATE_COMPLETED: "terminal",
  TASK_STATE_FAILED: "terminal",
  TASK_STATE_CANCELED: "terminal",
  TASK_STATE_REJECTED: "terminal",
};

export const taskStates: readonly TaskState[] = Object.keys(stateKinds) as TaskState[];

export function isTaskState(value: unknown): value is TaskState {
  return typeof value === "string" && Object.hasOwn(stateKinds, value);
}

export function isTerminal(state: TaskState): boolean {
  return stateKinds[state] === "terminal";
}

export function isInterrupted(state: TaskState): boolean {
  return stateKinds[state] === "interrupted";
}

/**
 * Whether a task may move from one state to another. The specification forbids one thing alone, leaving a terminal
 * state (§3.1.1); going back to SUBMITTED is a server's mistake, since it means that nothing has begun.
 */
export function mayMove(from: TaskState, to: TaskState): boolean {
  return stateKinds[from] !== "terminal" && (to !== "TASK_STATE_SUBMITTED" || from === "TASK_STATE_SUBMITTED");
}
