import type { Entry, Fault, Read, Stored, TaskLog } from "./history.ts";

/** The time from the commit of an event until a reader received it, in the absence of faults, in milliseconds. */
export interface Promptness {
  readonly events: number;
  readonly median: number;
  readonly p99: number;
  /** The number of tasks that ended without a fault and that the witness can see. `told`: how many of these tasks woke it up after their end. */
  readonly ends: number;
  readonly told: number;
}

/** The time after a fault until everything is normal, in milliseconds. */
const recovery = 8_000;

/**
 * Measures the last events of tasks if no fault preceded the commit, and the reader was already connected. Because no event follows the last one,
 * no later event hides a missed wake-up. A reader on the node that stores the event needs no wake-up, so only readers of tasks that another
 * client started count.
 */
export function promptness(history: readonly Entry[], logs: readonly TaskLog[]): Promptness {
  const faults = history.filter((entry): entry is Fault => entry.type === "fault");
  const isQuiet = (at: number): boolean =>
    !faults.some((fault) => at > fault.at - 1_000 && at < fault.at + fault.lasts + recovery);
  const commits = new Map<string, Stored>();
  const began = new Map<number, number>();
  const ends = new Map(logs.map(({ taskId, records }) => [taskId, records.length]));
  for (const entry of history) {
    if (entry.type === "stored" && ends.get(entry.taskId) === entry.seq) commits.set(entry.taskId, entry);
  }
  const delays: number[] = [];
  for (const read of history) {
    if (read.type !== "read" || read.joined !== true) continue;
    const since = began.get(read.stream) ?? read.at;
    began.set(read.stream, since);
    const commit = commitOf(read, commits);
    if (commit === undefined || commit.at < since || !isQuiet(commit.at)) continue;
    delays.push(Math.max(0, read.at - commit.at));
  }
  delays.sort((one, other) => one - other);
  const at = (share: number): number => delays[Math.floor(delays.length * share)] ?? 0;
  return { events: delays.length, median: at(0.5), p99: at(0.99), ...toldOf(history, commits, isQuiet) };
}

function toldOf(
  history: readonly Entry[],
  commits: ReadonlyMap<string, Stored>,
  isQuiet: (at: number) => boolean,
): Pick<Promptness, "ends" | "told"> {
  const seen = new Map<string, number>();
  for (const entry of history)
    if (entry.type === "told") seen.set(entry.taskId, Math.max(entry.seq, seen.get(entry.taskId) ?? 0));
  const ends = [...commits.values()].filter(({ at, taskId }) => isQuiet(at) && seen.has(taskId));
  return { ends: ends.length, told: ends.filter(({ taskId, seq }) => (seen.get(taskId) ?? 0) >= seq).length };
}

function commitOf({ whole, seq, taskId }: Read, commits: ReadonlyMap<string, Stored>): Stored | undefined {
  const commit = commits.get(taskId);
  return whole || seq === undefined || commit?.seq !== seq ? undefined : commit;
}
