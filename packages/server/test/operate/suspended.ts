import { systemClock } from "@parley/a2a/internal/base/index";
import { directHost } from "../../src/operate/direct.ts";
import { createOperator } from "../../src/operate/operator.ts";
import type { Operator } from "../../src/operate/port.ts";
import type { Store } from "../../src/store/index.ts";

function operating(store: Store): Operator {
  return createOperator({ store, clock: systemClock, host: directHost(store, systemClock) });
}

/** Resumes a suspended task like `parley ops resume`. Returns whether the task was suspended. */
export async function resumeTask(store: Store, agent: string, taskId: string): Promise<boolean> {
  return (await operating(store).resume({ agent, taskId }, {})).ok;
}

/** Returns the ids of the suspended tasks, on all pages. */
export async function suspendedTasks(store: Store): Promise<readonly string[]> {
  const ids: string[] = [];
  for (let cursor: string | undefined; ;) {
    const { tasks, next } = await operating(store).list({ suspended: true, limit: 500, ...(cursor && { cursor }) });
    ids.push(...tasks.map(({ taskId }) => taskId));
    if (next === undefined) return ids;
    cursor = next;
  }
}
