import type { TaskState } from "@parley/a2a/internal/model/index";
import { isTerminal, taskStates } from "@parley/a2a/model";

/** The short name of a state: `input-required` for `TASK_STATE_INPUT_REQUIRED`. */
export function stateName(state: TaskState): string {
  return state.slice("TASK_STATE_".length).toLowerCase().replaceAll("_", "-");
}

/** Parses a state in either spelling. */
export function parseState(text: string): TaskState | undefined {
  const wanted = text.toLowerCase().replaceAll("_", "-");
  return taskStates.find((state) => state === text || stateName(state) === wanted);
}

export const stateNames: readonly string[] = taskStates.map(stateName);

/** Whether the task failed, was rejected or was canceled. */
export function endedBadly(state: TaskState): boolean {
  return isTerminal(state) && state !== "TASK_STATE_COMPLETED";
}
