import type { TaskState } from "@parley/a2a";
import { isTerminal, taskStates } from "@parley/a2a/model";

/** `input-required` for `TASK_STATE_INPUT_REQUIRED`: the state as people say it. */
export function stateName(state: TaskState): string {
  return state.slice("TASK_STATE_".length).toLowerCase().replaceAll("_", "-");
}

/** A state as somebody typed it, in either spelling. */
export function parseState(text: string): TaskState | undefined {
  const wanted = text.toLowerCase().replaceAll("_", "-");
  return taskStates.find((state) => state === text || stateName(state) === wanted);
}

export const stateNames: readonly string[] = taskStates.map(stateName);

/** Whether a task came to an end that is not the one its caller wanted. */
export function endedBadly(state: TaskState): boolean {
  return isTerminal(state) && state !== "TASK_STATE_COMPLETED";
}
