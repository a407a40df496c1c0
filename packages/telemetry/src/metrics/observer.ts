import type { A2AError } from "@parley/a2a/internal/model/index";
import type { Gauges, Observer } from "@parley/a2a/internal/protocol/index";
import { attribute } from "../names.ts";
import { CallRecorders } from "./calls.ts";
import { metrics, type Instruments, type Labels, type Metric, type Recorder } from "./definitions.ts";
import { ProcessUsage } from "./process.ts";
import { byAgent, failing, secondsSince } from "./recorders.ts";

/** Cache time for values of the store, in milliseconds. Several exporters may read them at the same time. */
const storeFor = 1000;

/** How long a reading waits for the store, in milliseconds: less than Prometheus waits for a scrape, so that the other values arrive. */
const maxStoreWait = 3000;

/** An observer that records metrics. */
export function metricsObserver(instruments: Instruments): Observer {
  /** The agents' names on their cards, by mount id. */
  const names = new Map<string, string>();
  const nameOf = (agent: string): string => names.get(agent) ?? agent;
  const server = new CallRecorders(instruments, metrics.server);
  const client = new CallRecorders(instruments, metrics.client);
  const turns = byAgent(instruments, metrics.run);
  const records = byAgent(instruments, metrics.records);
  let committed: Recorder | undefined;
  const timed = (metric: Metric, labels: Labels) => {
    const since = performance.now();
    return (error?: A2AError) => instruments.recorder(metric, failing(labels, error))(secondsSince(since));
  };
  const count = (metric: Metric, labels: Labels): void => instruments.recorder(metric, labels)(1);
  return {
    call({ operation, version, agent, card }) {
      if (card !== undefined && names.get(agent) !== card.name) names.set(agent, card.name);
      return server.measured(operation, version, nameOf(agent));
    },
    request: ({ operation, version, card }) => client.measured(operation, version, card?.name),
    turn({ card: { name } }) {
      const since = performance.now();
      return (error) => {
        const recorder =
          error === undefined
            ? turns(name)
            : instruments.recorder(metrics.run, failing({ [attribute.agentName]: name }, error));
        recorder(secondsSince(since));
      };
    },
    step: ({ agent, name }) =>
      timed(metrics.step, { [attribute.agentName]: nameOf(agent), [attribute.toolName]: name }),
    delegation: ({ name }) => timed(metrics.delegation, { [attribute.agentName]: name }),
    commit() {
      const since = performance.now();
      return (error) => {
        const recorder =
          error === undefined
            ? (committed ??= instruments.recorder(metrics.commit, {}))
            : instruments.recorder(metrics.commit, failing({}, error));
        recorder(secondsSince(since));
      };
    },
    append: ({ agent, records: stored }) => records(nameOf(agent))(stored),
    retry: ({ operation, error }) =>
      count(metrics.retries, { [attribute.method]: operation, [attribute.error]: error.code }),
    delivery() {
      const since = performance.now();
      return ({ error }) => {
        const outcome = error === undefined ? "delivered" : error.code === "Aborted" ? "aborted" : "failed";
        instruments.recorder(metrics.delivery, { [attribute.outcome]: outcome })(secondsSince(since));
      };
    },
    lease: ({ change }) => count(metrics.leases, { [attribute.leaseChange]: change }),
    gauges: (gauges) => readGauges(instruments, gauges),
  };
}

/** Reads the gauges of a server and the resource usage of its process. */
function readGauges(instruments: Instruments, gauges: Gauges): () => void {
  const usage = new ProcessUsage();
  let stored: ReturnType<Gauges["store"]> | undefined;
  let askedAt = -Infinity;
  let isAsking = false;
  const store = (): ReturnType<Gauges["store"]> => {
    const now = performance.now();
    // A store that hangs is asked once, however often it is read.
    if (stored !== undefined && (isAsking || now - askedAt < storeFor)) return stored;
    askedAt = now;
    isAsking = true;
    return (stored = gauges.store().finally(() => (isAsking = false)));
  };
  const end = instruments.collect(async (set) => {
    const { activeRuns, restingRuns, usedBytes, connections } = gauges.process();
    set(metrics.activeRuns, activeRuns);
    set(metrics.restingRuns, restingRuns);
    set(metrics.heldBytes, usedBytes);
    if (connections !== undefined) {
      const { total, idle, waiting } = connections;
      set(metrics.connections, total - idle, { [attribute.connectionState]: "used" });
      set(metrics.connections, idle, { [attribute.connectionState]: "idle" });
      set(metrics.connectionWaits, waiting);
    }
    usage.read(set);
    try {
      const values = await within(store(), maxStoreWait);
      set(metrics.queued, values.queuedTasks);
      set(metrics.queueAge, values.queueAgeMs / 1000);
      set(metrics.waiting, values.waitingTasks);
      set(metrics.suspended, values.suspendedTasks);
      set(metrics.dueWebhooks, values.dueWebhooks);
      set(metrics.webhookDelay, values.webhookDelayMs / 1000);
      set(metrics.storeFailed, 0);
    } catch {
      // The server's log has the reason, because the server polls the store, too.
      set(metrics.storeFailed, 1);
    }
  });
  return () => {
    end();
    usage.close();
  };
}

/** Rejects if the work takes longer. */
async function within<T>(work: Promise<T>, ms: number): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no answer within ${ms} ms`)), ms);
    timer.unref();
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}
