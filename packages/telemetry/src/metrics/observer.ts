import type { A2AError } from "@parley/a2a/internal/model/index";
import type { Gauges, ObservedAnswer, Observer, OperationName } from "@parley/a2a/internal/protocol/index";
import { attribute } from "../names.ts";
import { metrics, type Instruments, type Labels, type Metric } from "./definitions.ts";
import { ProcessUsage } from "./process.ts";

/** Milliseconds for which values of the store are kept: exporters may ask at the same time. */
const storeFor = 1000;

/** An observer that measures. */
export function metricsObserver(instruments: Instruments): Observer {
  const { record } = instruments;
  /** What the cards of this process call their agents, by the ids that hosts gave them. */
  const names = new Map<string, string>();
  const timed = (metric: Metric, labels: Labels) => {
    const since = performance.now();
    return (error?: A2AError) => record(metric, secondsSince(since), failing(labels, error));
  };
  const nameOf = (agent: string): string => names.get(agent) ?? agent;
  return {
    call({ operation, version, agent, card }) {
      if (card !== undefined && names.get(agent) !== card.name) names.set(agent, card.name);
      return new MeasuredCall(record, metrics.server, operation, labelsOf(operation, version, nameOf(agent)));
    },
    request({ operation, version, card }) {
      return new MeasuredCall(record, metrics.client, operation, labelsOf(operation, version, card?.name));
    },
    turn: ({ card }) => timed(metrics.run, { [attribute.agentName]: card.name }),
    step: ({ agent, name }) =>
      timed(metrics.step, { [attribute.agentName]: nameOf(agent), [attribute.toolName]: name }),
    delegation: ({ name }) => timed(metrics.delegation, { [attribute.agentName]: name }),
    commit: () => timed(metrics.commit, {}),
    append: ({ agent, records }) => record(metrics.records, records, { [attribute.agentName]: nameOf(agent) }),
    retry: ({ operation, error }) =>
      record(metrics.retries, 1, { [attribute.method]: operation, [attribute.error]: error.code }),
    delivery() {
      const since = performance.now();
      return ({ error }) => {
        const outcome = error === undefined ? "delivered" : "failed";
        record(metrics.delivery, secondsSince(since), { [attribute.outcome]: outcome });
      };
    },
    lease: ({ change }) => record(metrics.leases, 1, { [attribute.leaseChange]: change }),
    gauges: (gauges) => readGauges(instruments, gauges),
  };
}

function labelsOf(operation: OperationName, version: string, agent: string | undefined): Labels {
  return {
    [attribute.method]: operation,
    [attribute.version]: version,
    ...(agent !== undefined && { [attribute.agentName]: agent }),
  };
}

function failing(labels: Labels, error: A2AError | undefined): Labels {
  return error === undefined ? labels : { ...labels, [attribute.error]: error.code };
}

function secondsSince(since: number): number {
  return (performance.now() - since) / 1000;
}

/** A class, because there is one for each call. */
class MeasuredCall {
  readonly #record: Instruments["record"];
  readonly #metrics: typeof metrics.server;
  readonly #streams: boolean;
  readonly #labels: Labels;
  readonly #since: number;
  #events = 0;

  constructor(record: Instruments["record"], to: typeof metrics.server, operation: OperationName, labels: Labels) {
    this.#record = record;
    this.#metrics = to;
    this.#streams = operation === "SendStreamingMessage" || operation === "SubscribeToTask";
    this.#labels = labels;
    this.#since = performance.now();
  }

  answered({ events }: ObservedAnswer): void {
    if (!this.#streams) return;
    if (this.#events === 0) this.#record(this.#metrics.first, secondsSince(this.#since), this.#labels);
    this.#events += events;
  }

  end(error?: A2AError): void {
    const labels = failing(this.#labels, error);
    this.#record(this.#metrics.duration, secondsSince(this.#since), labels);
    if (this.#streams) this.#record(this.#metrics.events, this.#events, labels);
  }
}

/** Reads the gauges of a server, and what its process uses. */
function readGauges(instruments: Instruments, gauges: Gauges): () => void {
  const usage = new ProcessUsage();
  let stored: ReturnType<Gauges["store"]> | undefined;
  let askedAt = -Infinity;
  const store = (): ReturnType<Gauges["store"]> => {
    const now = performance.now();
    if (stored !== undefined && now - askedAt < storeFor) return stored;
    askedAt = now;
    return (stored = gauges.store());
  };
  const end = instruments.collect(async (set) => {
    const { activeRuns, restingRuns, usedBytes } = gauges.process();
    set(metrics.activeRuns, activeRuns);
    set(metrics.restingRuns, restingRuns);
    set(metrics.heldBytes, usedBytes);
    usage.read(set);
    try {
      const values = await store();
      set(metrics.queued, values.queuedTasks);
      set(metrics.queueAge, values.queueAgeMs / 1000);
      set(metrics.waiting, values.waitingTasks);
      set(metrics.suspended, values.suspendedTasks);
      set(metrics.dueWebhooks, values.dueWebhooks);
      set(metrics.webhookDelay, values.webhookDelayMs / 1000);
      set(metrics.storeFailed, 0);
    } catch {
      // The log of the server says why: it asks the store all the time.
      set(metrics.storeFailed, 1);
    }
  });
  return () => {
    end();
    usage.close();
  };
}
