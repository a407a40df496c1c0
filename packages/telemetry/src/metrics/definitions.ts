import { attribute } from "../names.ts";

/** A metric: the same in OpenTelemetry and at `/metrics`. */
export interface Metric {
  readonly name: string;
  readonly kind: "counter" | "gauge" | "histogram";
  /** UCUM. */
  readonly unit: string;
  readonly description: string;
  /** Names of its labels. */
  readonly labels: readonly string[];
  /** Bounds of the buckets of a histogram. */
  readonly buckets?: readonly number[];
}

/** Labels of one value. */
export type Labels = Readonly<Record<string, string>>;

const seconds = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800];
const counts = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000];
const { method, version, agentName, error, toolName, leaseChange, outcome, cpuMode, connectionState } = attribute;
const ofCall = [method, version, agentName, error];

function histogram(name: string, description: string, labels: readonly string[], unit = "s"): Metric {
  return { name, kind: "histogram", unit, description, labels, buckets: unit === "s" ? seconds : counts };
}

function counter(name: string, description: string, labels: readonly string[], unit: string): Metric {
  return { name, kind: "counter", unit, description, labels };
}

function gauge(name: string, description: string, unit: string, labels: readonly string[] = []): Metric {
  return { name, kind: "gauge", unit, description, labels };
}

/** The metrics of one side of a call. */
export interface CallMetrics {
  readonly duration: Metric;
  readonly first: Metric;
  readonly events: Metric;
}

function callMetrics(side: "client" | "server", whose: string): CallMetrics {
  return {
    duration: histogram(`a2a.${side}.operation.duration`, `Duration of ${whose}, with the whole of a stream`, ofCall),
    first: histogram(`a2a.${side}.response.time_to_first_event`, `Time to the first event of a stream`, ofCall),
    events: histogram(`a2a.${side}.response.sse.event.count`, `Events of a stream`, ofCall, "{event}"),
  };
}

type Single =
  | "run"
  | "step"
  | "delegation"
  | "commit"
  | "records"
  | "retries"
  | "delivery"
  | "leases"
  | "activeRuns"
  | "restingRuns"
  | "heldBytes"
  | "queued"
  | "queueAge"
  | "waiting"
  | "suspended"
  | "dueWebhooks"
  | "webhookDelay"
  | "storeFailed"
  | "connections"
  | "connectionWaits"
  | "cpu"
  | "memory"
  | "loopMean"
  | "loopP99";

/** Every metric. */
export const metrics: Readonly<Record<Single, Metric> & Record<"server" | "client", CallMetrics>> = {
  server: callMetrics("server", "calls of an agent"),
  client: callMetrics("client", "requests to an agent"),
  run: histogram("gen_ai.invoke_agent.duration", "Duration of turns of an agent", [agentName, error]),
  step: histogram("gen_ai.execute_tool.duration", "Duration of steps of an agent", [agentName, toolName, error]),
  delegation: histogram("parley.delegation.duration", "Duration of delegations to other agents", [agentName, error]),
  commit: histogram("parley.store.commit.duration", "Duration of transactions of the store", [error]),
  records: counter(
    "parley.store.records",
    "Records that were stored, such as events of tasks",
    [agentName],
    "{record}",
  ),
  retries: counter("parley.client.retries", "Waits of a client before it retries", [method, error], "{retry}"),
  delivery: histogram("parley.webhook.delivery.duration", "Duration of attempts to post to a webhook", [outcome]),
  leases: counter("parley.lease.changes", "Runs taken over, leases lost, tasks suspended", [leaseChange], "{change}"),
  activeRuns: gauge("parley.runs.active", "Runs of agents that do more than wait", "{run}"),
  restingRuns: gauge("parley.runs.resting", "Runs of agents that only wait", "{run}"),
  heldBytes: gauge("parley.memory.held", "Bytes of tasks that run, which limits.totalBytes limits", "By"),
  queued: gauge("parley.queue.length", "Tasks that wait for a process with room", "{task}"),
  queueAge: gauge("parley.queue.age", "How long the first task of the queue has waited", "s"),
  waiting: gauge("parley.tasks.waiting", "Tasks that wait for a time, or for an event with a timeout", "{task}"),
  suspended: gauge("parley.tasks.suspended", "Tasks that wait for an operator", "{task}"),
  dueWebhooks: gauge("parley.webhooks.due", "Webhooks whose next attempt is due", "{webhook}"),
  webhookDelay: gauge("parley.webhooks.delay", "How long the first due webhook has been due", "s"),
  storeFailed: gauge("parley.store.unreadable", "1 where the store could not be asked for its gauges", "1"),
  connections: gauge("parley.store.connections", "Connections of the store's pool", "{connection}", [connectionState]),
  connectionWaits: gauge("parley.store.connection.waits", "Statements that wait for a connection", "{wait}"),
  cpu: counter("process.cpu.time", "CPU time of the process", [cpuMode], "s"),
  memory: gauge("process.memory.usage", "Resident memory of the process", "By"),
  loopMean: gauge("nodejs.eventloop.delay.mean", "Mean delay of the event loop since the last reading", "s"),
  loopP99: gauge("nodejs.eventloop.delay.p99", "Delay of the event loop, 99th percentile since the last reading", "s"),
};

/** The metrics that are read when somebody asks. */
export const read: readonly Metric[] = [
  metrics.activeRuns,
  metrics.restingRuns,
  metrics.heldBytes,
  metrics.queued,
  metrics.queueAge,
  metrics.waiting,
  metrics.suspended,
  metrics.dueWebhooks,
  metrics.webhookDelay,
  metrics.storeFailed,
  metrics.connections,
  metrics.connectionWaits,
  metrics.cpu,
  metrics.memory,
  metrics.loopMean,
  metrics.loopP99,
];

/** All of them, in one list. */
export const all: readonly Metric[] = Object.values(metrics).flatMap((each: Metric | CallMetrics) =>
  "name" in each ? [each] : [each.duration, each.first, each.events],
);

/** Adds to a counter, or records a value of a histogram. */
export type Recorder = (value: number) => void;

/** Where metrics go. */
export interface Instruments {
  /** What records values with these labels. Keep it where values are frequent: finding it takes longer than a value. */
  recorder(metric: Metric, labels: Labels): Recorder;
  /** Calls `reading` when somebody asks for the metrics of `read`. The returned function ends it. */
  collect(reading: Reading): () => void;
}

/** Reads values. It never rejects. */
export type Reading = (set: (metric: Metric, value: number, labels?: Labels) => void) => Promise<void>;
