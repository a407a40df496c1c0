import type { TaskState } from "@parley/a2a/model";
import { exact } from "./metrics.ts";
import type { Counted, Entry, Metered, Stored, TaskLog } from "./history.ts";

/* Rules about numbers for operators and the dashboard. Numbers of the store must be exact. Those of processes have bounds: kills lose counts. */

type States = Readonly<Partial<Record<TaskState, number>>>;

export function operatorProblems(history: readonly Entry[], logs: readonly TaskLog[]): readonly string[] {
  const counted = history.filter((entry): entry is Counted => entry.type === "counted");
  const metered = history.filter((entry): entry is Metered => entry.type === "metered");
  const acked = new Set(history.flatMap((entry) => (entry.type === "acked" ? [entry.taskId] : [])));
  const told = counted.flatMap((entry) => [
    ...differences(`Node ${entry.node}`, { tasks: entry.listed }, { tasks: acked.size }),
    ...countProblems(entry, logs),
  ]);
  return metered.length === 0 ? told : [...told, ...counterProblems(metered, history, logs)];
}

function countProblems(entry: Counted, logs: readonly TaskLog[]): readonly string[] {
  const { node, agents, open, gauges } = entry;
  const states = new Map<string, Record<string, number>>();
  const now = new Map(open.map(({ taskId, state }) => [taskId, state]));
  for (const { taskId, records, isResumable } of logs) {
    const agent = isResumable ? "/resumable" : "/plain";
    const state = now.get(taskId) ?? records.findLast((record) => record.state !== undefined)?.state ?? "none";
    const own = states.get(agent) ?? {};
    states.set(agent, { ...own, [state]: (own[state] ?? 0) + 1 });
  }
  const queued = open.filter(({ state }) => state === "TASK_STATE_SUBMITTED").length;
  const waiting = open.filter(({ waits }) => waits).length;
  const { parley_queue_age_seconds: age = 0, ...others } = gauges;
  const expected = { parley_queue_length: queued, parley_tasks_waiting: waiting };
  const absent = exact.filter((name) => !(name in gauges));
  return [
    ...[...new Set([...states.keys(), ...Object.keys(agents)])].flatMap((agent) =>
      differences(`Node ${node}, agent ${agent}`, agents[agent] ?? {}, states.get(agent) ?? {}),
    ),
    ...differences(`Node ${node}`, { queued: entry.queued, runs: entry.runs }, { queued, runs: 0 }),
    ...differences(`Node ${node}`, { paused: entry.paused.length }, { paused: Math.min(1, queued) }),
    ...differences(`Dashboard of node ${node}`, others, expected),
    ...absent.map((name) => `Dashboard of node ${node}: ${name} is missing`),
    ...(age > 0 === queued > 0 ? [] : [`Dashboard of node ${node}: the queue is ${age} s old, with ${queued} tasks`]),
  ];
}

function differences(whose: string, told: States | Record<string, number>, expected: object): readonly string[] {
  const [one, other] = [told, expected].map((each) => new Map<string, number>(Object.entries(each)));
  const names = [...new Set([...(one?.keys() ?? []), ...(other?.keys() ?? [])])];
  return names.flatMap((name) => {
    const [count = 0, right = 0] = [one?.get(name), other?.get(name)];
    return count === right ? [] : [`${whose}: ${count} ${name}, and not ${right}`];
  });
}

function counterProblems(
  metered: readonly Metered[],
  history: readonly Entry[],
  logs: readonly TaskLog[],
): readonly string[] {
  const stored = history.filter((entry): entry is Stored => entry.type === "stored");
  const problems: string[] = [];
  const atMost = (what: string, count: number, limit: number): void => {
    if (count > limit) problems.push(`The dashboard has ${count} ${what}, and the history ${limit}`);
  };
  for (const { node, records, turns } of metered) {
    const own = stored.filter((entry) => entry.node === node);
    const written = own.reduce((sum, entry) => sum + entry.records, 0);
    if (records < written) problems.push(`Process ${node} counts ${records} records, and has stored ${written}`);
    const runs = new Set(own.map(({ taskId, fence }) => `${taskId} ${fence}`)).size;
    if (turns < runs) problems.push(`Process ${node} counts ${turns} turns, and has stored events of ${runs}`);
  }
  const sum = (of: (entry: Metered) => number): number => metered.reduce((all, entry) => all + of(entry), 0);
  const records = logs.reduce((all, log) => all + log.records.length, 0);
  atMost(
    "records",
    sum(({ allRecords }) => allRecords),
    records,
  );
  atMost(
    "takeovers",
    sum(({ allTakeovers }) => allTakeovers),
    logs.reduce((all, log) => all + repeatedAttempts(log), 0),
  );
  const taken = history.filter((entry) => entry.type === "delivered" && entry.taken).length;
  atMost(
    "webhooks that were delivered",
    sum(({ allDelivered }) => allDelivered),
    taken,
  );
  return problems;
}

/** Counts the repeated attempts over all turns of the task. */
function repeatedAttempts({ records }: TaskLog): number {
  const attempts = new Map<number, number>();
  for (const { turn, attempt } of records) attempts.set(turn, Math.max(attempts.get(turn) ?? 1, attempt));
  return [...attempts.values()].reduce((sum, attempt) => sum + attempt - 1, 0);
}
