import type { Clock } from "@parley/a2a/internal/base/index";
import { endOfRun } from "../engine/log/append.ts";
import { statusRecord } from "../engine/log/records.ts";
import { isQueued, queueKey } from "../engine/run/task-rows.ts";
import { waitingRun } from "../engine/run/turn-input.ts";
import type { OperatingHost } from "../engine/shared/operating.ts";
import { pushFeature } from "../push/stored.ts";
import { queueFeature, type AppendOutcome, type Store, type TaskAppend, type TaskEffect } from "../store/index.ts";

const leaveQueue: TaskEffect = { effect: "feature", op: "delete", feature: queueFeature, key: queueKey };

/**
 * The host for acts of an operator directly on a store, without a server. Running servers notice the changes like appends of other
 * processes. This host does not know the nodes and their agents.
 */
export function directHost(store: Store, clock: Pick<Clock, "now">): OperatingHost {
  const append = async (item: TaskAppend): Promise<AppendOutcome> => {
    const due = Math.floor(clock.now());
    const wakes: readonly TaskEffect[] =
      item.records.length === 0 ? [] : [{ effect: "feature", op: "wake", feature: pushFeature, due }];
    const [outcome] = await store.append([{ ...item, effects: [...(item.effects ?? []), ...wakes] }]);
    if (outcome === undefined) throw new Error("The store returned no outcome for an item");
    return outcome;
  };
  return {
    node: "",
    append,
    async cancel(head, { effects, seq }) {
      const { task, contextId, statusTime } = head;
      const { turn = 1, attempt = 1 } = head.run ?? waitingRun(head) ?? {};
      const origin = { taskId: task.taskId, contextId, turn, attempt, extensions: [], trace: undefined };
      const time = Math.max(clock.now(), statusTime);
      const record = statusRecord(origin, { state: "TASK_STATE_CANCELED" }, "system", "", time);
      const outcome = await append({
        task,
        ...(seq !== undefined && { expect: seq }),
        records: [record],
        effects: [...endOfRun, ...(isQueued(head) ? [leaveQueue] : []), ...effects],
      });
      return outcome.ok;
    },
    nudge: async () => {},
    agents: () => undefined,
    nodes: () => new Map(),
    silence: Infinity,
  };
}
