import { readFileSync } from "node:fs";
import { isTerminal } from "@parley/a2a/model";
import type { LogRecord } from "@parley/a2a/internal/model/index";
import type { ListPosition, Store } from "@parley/server/store";
import { available } from "./available.ts";
import type { Stored, TaskLog } from "./history.ts";
import { pause } from "./harms.ts";

/* Reads the final state of the store and the nodes. */

const agents = ["/resumable", "/plain"] as const;

/** The maximum number of remaining items in a report. */
const maxReported = 20;

/**
 * Waits until no task is at work and no webhook is due, or until `ms` milliseconds pass without progress. The total time has no limit, because a
 * busy machine has many pending webhooks when the faults end. Returns the remaining items.
 */
export async function leftAfter(store: Store, ms: number): Promise<readonly string[]> {
  let [least, since] = [Infinity, performance.now()];
  for (;;) {
    const left = await available(() => whatIsLeft(store));
    if (left.length < least) [least, since] = [left.length, performance.now()];
    if (left.length === 0 || performance.now() - since > ms) return left.slice(0, maxReported);
    await pause(2_000);
  }
}

async function whatIsLeft(store: Store): Promise<readonly string[]> {
  const due = await store.dueFeatures({ feature: "push", now: Infinity, limit: 100_000 });
  const left = due.map((row) => `webhook ${row.key} of ${row.task.taskId}, due at ${new Date(row.due).toISOString()}`);
  for (const agent of agents) {
    for (const state of ["TASK_STATE_SUBMITTED", "TASK_STATE_WORKING"] as const) {
      const { tasks } = await store.list({ agent }, { limit: 10, artifacts: false, state });
      left.push(...tasks.map(({ task }) => `task ${task.id}, ${state}`));
    }
  }
  return left;
}

/** Returns all tasks, with their logs. */
export async function logsOf(store: Store): Promise<readonly TaskLog[]> {
  const logs: TaskLog[] = [];
  for (const agent of agents) {
    let after: ListPosition | undefined;
    do {
      const query = { limit: 100, artifacts: false, ...(after && { after }) };
      const page = await available(() => store.list({ agent }, query));
      logs.push(...(await Promise.all(page.tasks.map(({ task }) => available(() => logOf(store, agent, task.id))))));
      after = page.next;
    } while (after !== undefined);
  }
  return logs;
}

async function logOf(store: Store, agent: string, taskId: string): Promise<TaskLog> {
  const head = await store.head({ agent }, taskId);
  const records: LogRecord[] = [];
  while (records.length < (head?.seq ?? 0)) {
    const page = await store.read({ agent }, taskId, { after: records.length, limit: 1_000 });
    if (page === undefined || page.records.length === 0) break;
    records.push(...page.records);
  }
  const isOver = head !== undefined && isTerminal(head.state);
  return { taskId, records, isHeld: isOver && head.run !== undefined, isResumable: agent === "/resumable" };
}

/** Returns the writes of a node under its fences. The last line of a killed node may be incomplete. */
export function storedIn(journal: string): readonly Stored[] {
  return readFileSync(journal, "utf8")
    .split("\n")
    .flatMap((line) => (line.startsWith("{") && line.endsWith("}") ? [JSON.parse(line) as Stored] : []));
}
