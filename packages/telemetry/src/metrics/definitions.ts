import { attribute } from "../names.ts";

/** A metric, for both OpenTelemetry and `/metrics`. */
export interface Metric {
  readonly name: string;
  readonly kind: "counter" | "gauge" | "histogram";
  /** In UCUM notation. */
  readonly unit: string;
  readonly description: string;
  /** Names of its labels. */
  readonly labels: readonly string[];
  /** Bucket bounds of a histogram. */
  readonly buckets?: readonly number[];
}

/** The labels of a series. */
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
    duration: histogram(`a2a.${side}.operation.duration`, `Duration of ${whose}, including the whole stream`, ofCall),
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
  records: counter("parley.store.records", "Stored records, such as events of tasks", [agentName], "{record}"),
  retries: counter("parley.client.retries", "Retries of a client", [method, error], "{retry}"),
  delivery: histogram("parley.webhook.delivery.duration", "Duration of attempts to post to a webhook", [outcome]),
  leases: counter("parley.lease.changes", "Runs taken over, leases lost, tasks suspended", [leaseChange], "{change}"),
  activeRuns: gauge("parley.runs.active", "Runs that do more than wait. limits.runs limits them", "{run}"),
  restingRuns: gauge("parley.runs.resting", "Runs that only wait for another agent or an authorization", "{run}"),
  heldBytes: gauge("parley.memory.held", "Bytes of running tasks. limits.totalBytes limits them", "By"),
  queued: gauge("parley.queue.length", "Tasks that wait for a process with room", "{task}"),
  queueAge: gauge("parley.queue.age", "Age of the oldest task in the queue", "s"),
  waiting: gauge("parley.tasks.waiting", "Tasks that wait for a time, or for an event with a timeout", "{task}"),
  suspended: gauge("parley.tasks.suspended", "Tasks that wait for an operator", "{task}"),
  dueWebhooks: gauge("parley.webhooks.due", "Webhooks whose next attempt is due, and has not begun", "{webhook}"),
  webhookDelay: gauge("parley.webhooks.delay", "Delay of the webhook that has been due longest", "s"),
  storeFailed: gauge("parley.store.unreadable", "1 if reading the gauges of the store failed", "1"),
  connections: gauge("parley.store.connections", "Connections of the store's pool", "{connection}", [connectionState]),
  connectionWaits: gauge("parley.store.connection.waits", "Statements that wait for a connection", "{wait}"),
  cpu: counter("process.cpu.time", "CPU time of the process", [cpuMode], "s"),
  memory: gauge("process.memory.usage", "Resident memory of the process", "By"),
  loopMean: gauge("nodejs.eventloop.delay.mean", "Mean delay of the event loop since the last scrape", "s"),
  loopP99: gauge("nodejs.eventloop.delay.p99", "99th percentile of the event loop's delay since the last scrape", "s"),
};

/** The metrics that are read when an exporter collects them. */
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

/** All metrics, in one list. */
export const all: readonly Metric[] = Object.values(metrics).flatMap((each: Metric | CallMetrics) =>
  "name" in each ? [each] : [each.duration, each.first, each.events],
);

/** Adds to a counter, or records a value of a histogram. */
export type Recorder = (value: number) => void;

/** Receives values of metrics. */
export interface Instruments {
  /** Returns a recorder for these labels. Keep it for frequent values: the lookup costs more than recording. */
  recorder(metric: Metric, labels: Labels): Recorder;
  /** Calls `reading` when an exporter collects the metrics of `read`. Returns a function that stops this. */
  collect(reading: Reading): () => void;
}

/** Reads values. Never rejects. */
export type Reading = (set: (metric: Metric, value: number, labels?: Labels) => void) => Promise<void>;
