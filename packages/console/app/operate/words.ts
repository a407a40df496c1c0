import { stateWord as withWait, type OperatedTask } from "@parley/server/internal/operate/port";

export { ageOf, nodeWord, ownerWord, waitWord } from "@parley/server/internal/operate/port";

/* Short display texts for values of the operators' API. */

/** `TASK_STATE_INPUT_REQUIRED` becomes `input required`. */
export function stateWord(state: string): string {
  return state
    .replace(/^TASK_STATE_/, "")
    .toLowerCase()
    .replaceAll("_", " ");
}

/** The display text of a task's state, and of what it waits for. */
export function stateOf(task: OperatedTask): string {
  return withWait(stateWord(task.state), task);
}
