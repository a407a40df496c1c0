import type { OperatedTask } from "@parley/server/internal/operate/port";

export { nodeWord } from "@parley/server/internal/operate/port";

/* Short display texts for values of the operators' API. */

/** `TASK_STATE_INPUT_REQUIRED` becomes `input required`. */
export function stateWord(state: string): string {
  return state
    .replace(/^TASK_STATE_/, "")
    .toLowerCase()
    .replaceAll("_", " ");
}

/** The display text of a task's state. */
export function stateOf({ state, run }: OperatedTask): string {
  return run?.suspended === true ? "suspended" : stateWord(state);
}

/** The age in its largest unit. */
export function ageOf(time: string): string {
  const seconds = Math.max(0, Math.round((Date.now() - Date.parse(time)) / 1000));
  if (seconds < 120) return `${seconds} s`;
  if (seconds < 7_200) return `${Math.floor(seconds / 60)} min`;
  return seconds < 172_800 ? `${Math.floor(seconds / 3_600)} h` : `${Math.floor(seconds / 86_400)} d`;
}
