import type { TaskState } from "./types.ts";

/** The states of a task as data (A2A 1.0 §4.1.3). */

/** What a state means for a waiting client: the task goes on, it needs an answer, or it is over. */
export type StateKind = "active" | "interrupted" | "terminal";

/** The kind of each state. */
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

/** Every state. */
export const taskStates: readonly TaskState[] = Object.keys(stateKinds) as TaskState[];

/** Whether a value is the name of a state. */
export function isTaskState(value: unknown): value is TaskState {
  return typeof value === "string" && Object.hasOwn(stateKinds, value);
}

/** Whether a task in this state is over: COMPLETED, FAILED, CANCELED or REJECTED. */
export function isTerminal(state: TaskState): boolean {
  return stateKinds[state] === "terminal";
}

/** Whether a task in this state waits for its caller: INPUT_REQUIRED or AUTH_REQUIRED. */
export function isInterrupted(state: TaskState): boolean {
  return stateKinds[state] === "interrupted";
}

/**
 * Whether a task may change from one state to another. The specification forbids leaving a terminal state (A2A 1.0
 * §3.1.1). Going back to SUBMITTED is refused too, because it says that no work has begun.
 */
export function mayMove(from: TaskState, to: TaskState): boolean {
  return stateKinds[from] !== "terminal" && (to !== "TASK_STATE_SUBMITTED" || from === "TASK_STATE_SUBMITTED");
}
