import { metrics, type Labels, type Metric, type Reading } from "./definitions.ts";

/** Gauges whose values do not add up: ages, what went wrong, and the usage of the process. The largest value counts. */
const largest: ReadonlySet<Metric> = new Set([
  metrics.queueAge,
  metrics.webhookDelay,
  metrics.storeFailed,
  metrics.cpu,
  metrics.memory,
  metrics.loopMean,
  metrics.loopP99,
]);

interface Sample {
  readonly labels: Labels;
  value: number;
}

/** The gauges of a process. It may have several servers, whose values add up. */
export class Readings {
  readonly #all = new Set<Reading>();

  get size(): number {
    return this.#all.size;
  }

  /** Adds the gauges of a server. Returns a function that removes them. */
  add(reading: Reading): () => void {
    this.#all.add(reading);
    return () => this.#all.delete(reading);
  }

  /** The current values. */
  async read(): Promise<ReadonlyMap<Metric, readonly Sample[]>> {
    const values = new Map<Metric, Sample[]>();
    const set = (metric: Metric, value: number, labels: Labels = {}): void => {
      const samples = values.get(metric) ?? [];
      values.set(metric, samples);
      const known = samples.find((sample) => metric.labels.every((name) => sample.labels[name] === labels[name]));
      if (known === undefined) samples.push({ labels, value });
      else known.value = largest.has(metric) ? Math.max(known.value, value) : known.value + value;
    };
    await Promise.all([...this.#all].map((reading) => reading(set)));
    return values;
  }
}
