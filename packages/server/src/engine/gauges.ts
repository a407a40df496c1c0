import type { ByteBudget, Gauges } from "@parley/a2a/internal/protocol/index";
import { pushFeature } from "../push/stored.ts";
import { queueFeature, waitFeature, type ClaimPosition, type DueFeature } from "../store/index.ts";
import type { EngineSettings } from "./shared/settings.ts";
import type { Runs } from "./supervise/index.ts";

/** Maximum counted tasks of each kind. Queued tasks have a higher limit, because their number shows how many processes are needed. */
const [maxCounted, maxQueued] = [1_000, 10_000];
const pageSize = 500;
const ever = Number.MAX_SAFE_INTEGER;

interface GaugesDeps {
  readonly settings: EngineSettings;
  readonly runs: Pick<Runs, "all">;
  readonly budget: ByteBudget;
  readonly agents: ReadonlyMap<string, unknown>;
}

export function gaugesOf({ settings, runs, budget, agents }: GaugesDeps): Gauges {
  const { store, clock } = settings;
  const rowsOf = (feature: string, now: number, limit = maxCounted): Promise<readonly DueFeature[]> =>
    store.dueFeatures({ feature, agents: [...agents.keys()], now, limit });

  /** Counts suspended tasks. Their leases are revoked, so active runs are not read. */
  async function countSuspended(): Promise<number> {
    let count = 0;
    for (let after: ClaimPosition | undefined; count < maxCounted;) {
      const page = await store.claimable({
        now: clock.now(),
        agents: [...agents.keys()],
        limit: pageSize,
        ...(after && { after }),
      });
      count += page.heads.filter(({ run }) => run?.suspended === true).length;
      if (page.next === undefined) break;
      after = page.next;
    }
    return Math.min(count, maxCounted);
  }

  async function queueAge(first: DueFeature | undefined): Promise<number> {
    const head = first && (await store.head(first.task, first.task.taskId));
    return head === undefined ? 0 : Math.max(0, clock.now() - head.statusTime);
  }

  return {
    process() {
      const all = [...runs.all()];
      const restingRuns = all.filter(({ phase }) => phase.resting).length;
      const connections = store.connections?.();
      const pool = connections && { connections };
      return { activeRuns: all.length - restingRuns, restingRuns, usedBytes: budget.used, ...pool };
    },
    async store() {
      const queued = await rowsOf(queueFeature, ever, maxQueued);
      const waits = await rowsOf(waitFeature, ever);
      const now = clock.now();
      const due = await rowsOf(pushFeature, now);
      return {
        queuedTasks: queued.length,
        queueAgeMs: await queueAge(queued[0]),
        waitingTasks: new Set(waits.map(({ task }) => JSON.stringify([task.agent, task.taskId]))).size,
        dueWebhooks: due.length,
        webhookDelayMs: Math.max(0, now - (due[0]?.due ?? now)),
        suspendedTasks: await countSuspended(),
      };
    },
  };
}
