import type { OperatedTask } from "@parley/server/internal/operate/port";

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

/** A short name of a node. The default name is a list of machine, process, start time and a random id. */
export function nodeWord(name: string): string {
  try {
    const read: unknown = JSON.parse(name);
    if (Array.isArray(read) && read.length === 4) {
      const [machine, process, , id] = read.map(String);
      return `${machine?.replace(/ pid:.*$/, "").slice(0, 11)}…/${process}/${id?.slice(0, 4)}`;
    }
  } catch {
    // The option `lease.holder` sets a custom name.
  }
  return name;
}

/** The age in its largest unit. */
export function ageOf(time: string): string {
  const seconds = Math.max(0, Math.round((Date.now() - Date.parse(time)) / 1000));
  if (seconds < 120) return `${seconds} s`;
  if (seconds < 7_200) return `${Math.floor(seconds / 60)} min`;
  return seconds < 172_800 ? `${Math.floor(seconds / 3_600)} h` : `${Math.floor(seconds / 86_400)} d`;
}
