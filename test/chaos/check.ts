import { effectRule } from "./check-effects.ts";
import { answerRule, cancelRule, streamRule } from "./check-readers.ts";
import { operatorProblems } from "./check-operators.ts";
import { contentRule, endRule, fenceRule, logRule, messageRule } from "./check-tasks.ts";
import { promptness, type Promptness } from "./check-promptness.ts";
import { webhookRule } from "./check-webhooks.ts";
import type { Entry, Fault, TaskLog } from "./history.ts";
import type { Order } from "./orders.ts";

/* Judges the history of a run. All functions here depend only on recorded data. */

/** A broken promise. */
export interface Violation {
  /** The name of the promise. */
  readonly rule: string;
  readonly taskId: string;
  readonly what: string;
}

/** The recorded data of one task. */
export interface TaskHistory {
  readonly taskId: string;
  /** The task's entries in the history, in order. */
  readonly entries: readonly Entry[];
  readonly log: TaskLog | undefined;
  /** The accepted orders. */
  readonly orders: readonly Order[];
}

/** Returns the violations of a task. */
export type Rule = (task: TaskHistory) => readonly string[];

/** The promises, by name. */
const rules: Readonly<Record<string, Rule>> = {
  "the log is whole": logRule,
  "every acknowledged message is there once, in order": messageRule,
  "every event is on every stream once, in order": streamRule,
  "an answer is the task": answerRule,
  "a cancel is final": cancelRule,
  "every task ends": endRule,
  "one valid fence at a time": fenceRule,
  "the task is what it would be without faults": contentRule,
  "no step is done again once its result is stored": effectRule,
  "every webhook comes in order, at least once": webhookRule,
};

export interface Verdict {
  readonly violations: readonly Violation[];
  /** The number of checked items of each kind. */
  readonly counts: Readonly<Record<string, number>>;
  readonly promptness: Promptness;
}

export interface CheckOptions {
  /** The accepted orders, by task. */
  readonly orders: ReadonlyMap<string, readonly Order[]>;
  /** The maximum median time from the commit of a last event until its reader received it, without a fault, in milliseconds. */
  readonly promptWithin: number;
}

/** Judges a history. */
export function check(history: readonly Entry[], logs: readonly TaskLog[], options: CheckOptions): Verdict {
  const tasks = byTask(history, logs, options.orders);
  const violations = [...tasks.values()].flatMap((task) =>
    Object.entries(rules).flatMap(([rule, judge]) => judge(task).map((what) => ({ rule, taskId: task.taskId, what }))),
  );
  for (const entry of history) {
    if (entry.type !== "trouble") continue;
    violations.push({ rule: "no client and no node fails", taskId: entry.taskId ?? "", what: entry.what });
  }
  for (const what of operatorProblems(history, logs))
    violations.push({ rule: "operators are told what happened", taskId: "", what });
  const prompt = promptness(history, logs);
  const rule = "wake-ups follow the commit";
  if (prompt.events > 0 && prompt.median > options.promptWithin) {
    const what = `${prompt.median} ms from the commit to the reader, median of ${prompt.events} last events without harm`;
    violations.push({ rule, taskId: "", what });
  }
  if (prompt.told < prompt.ends / 2) {
    const what = `Of ${prompt.ends} tasks that ended without harm, ${prompt.told} had ended when the last wake-up came`;
    violations.push({ rule, taskId: "", what });
  }
  return { violations, counts: countsOf(history, logs), promptness: prompt };
}

function byTask(
  history: readonly Entry[],
  logs: readonly TaskLog[],
  orders: ReadonlyMap<string, readonly Order[]>,
): ReadonlyMap<string, TaskHistory> {
  const entries = new Map<string, Entry[]>();
  for (const log of logs) entries.set(log.taskId, []);
  for (const entry of history) {
    if (!("taskId" in entry) || entry.type === "trouble") continue;
    const known = entries.get(entry.taskId);
    if (known === undefined) entries.set(entry.taskId, [entry]);
    else known.push(entry);
  }
  const found = new Map(logs.map((log) => [log.taskId, log]));
  return new Map(
    Array.from(entries, ([taskId, own]) => [
      taskId,
      { taskId, entries: own, log: found.get(taskId), orders: orders.get(taskId) ?? [] },
    ]),
  );
}

function countsOf(history: readonly Entry[], logs: readonly TaskLog[]): Readonly<Record<string, number>> {
  const counts: Record<string, number> = { tasks: logs.length };
  for (const { records } of logs) {
    count(counts, "records", records.length);
    if (records.some(({ attempt }) => attempt > 1)) count(counts, "tasks that were run again");
    const state = records.findLast((record) => record.state !== undefined)?.state;
    count(counts, `ended ${(state ?? "never").replace("TASK_STATE_", "").toLowerCase()}`);
  }
  const streams = new Set<number>();
  for (const entry of history) {
    if (entry.type === "read") streams.add(entry.stream);
    count(counts, entry.type === "fault" ? `fault: ${entry.what}` : plural[entry.type]);
    if (entry.type === "effect" && entry.uncertain) count(counts, "uncertain side effects");
  }
  return { ...counts, streams: streams.size };
}

function count(counts: Record<string, number>, name: string, more = 1): void {
  counts[name] = (counts[name] ?? 0) + more;
}

const plural: Readonly<Record<Exclude<Entry["type"], "fault">, string>> = {
  acked: "messages",
  read: "events read",
  closed: "streams closed",
  answered: "answers",
  canceled: "cancels",
  effect: "side effects",
  delivered: "webhooks",
  stored: "fenced appends",
  told: "wake-ups",
  trouble: "troubles",
  counted: "counts of operators",
  metered: "nodes with metrics",
};

/** Returns the events of a violation's task, and the faults at that time, in order. */
export function timeline(
  { taskId }: Violation,
  history: readonly Entry[],
  log: TaskLog | undefined,
): readonly string[] {
  const own = history.filter((entry) => "taskId" in entry && entry.taskId === taskId);
  const [from, to] = [(own[0]?.at ?? 0) - 5_000, (own.at(-1)?.at ?? 0) + 1_000];
  const during = (entry: Entry): entry is Fault => entry.type === "fault" && entry.at >= from && entry.at <= to;
  const records = (log?.records ?? []).map((record) => ({ type: "record" as const, at: record.time, ...record }));
  return [...own, ...history.filter(during), ...records]
    .toSorted((one, other) => one.at - other.at)
    .map(
      ({ at, type, ...rest }) =>
        `${new Date(at).toISOString().slice(11, 23)} ${type} ${JSON.stringify(rest).slice(0, 300)}`,
    );
}
