import { Caps } from "../metrics/caps.ts";
import {
  all,
  type Instruments,
  type Labels,
  type Metric,
  type Reading,
  type Recorder,
} from "../metrics/definitions.ts";
import { Readings } from "../metrics/readings.ts";

/** Maximum series of a metric. Further values go into one series with `other` labels. */
const maxSeries = 1000;

interface Series {
  readonly labels: string;
  /** The value of a counter, or the sum of a histogram. */
  sum: number;
  count: number;
  /** Number of values in each bucket. The last bucket has no bound. */
  readonly buckets: number[];
}

/** The Prometheus name of a metric, as the OpenTelemetry collector translates it. */
export function prometheusName({ name, unit, kind }: Pick<Metric, "name" | "unit" | "kind">): string {
  const base = name.replaceAll(".", "_");
  const suffix = unit === "s" ? "_seconds" : unit === "By" ? "_bytes" : "";
  return `${base}${suffix}${kind === "counter" ? "_total" : ""}`;
}

/** Stores the values of metrics, and writes them in the Prometheus text format. */
export class Registry implements Instruments {
  readonly #caps = new Caps();
  readonly #series = new Map<Metric, Map<string, Series>>();
  readonly #readings = new Readings();

  recorder(metric: Metric, labels: Labels): Recorder {
    const series = this.#seriesOf(metric, this.#caps.bound(metric, labels));
    const { buckets: bounds } = metric;
    return (value) => {
      series.sum += value;
      series.count += 1;
      if (bounds === undefined) return;
      let at = 0;
      while (at < bounds.length && value > (bounds[at] ?? Infinity)) at += 1;
      series.buckets[at] = (series.buckets[at] ?? 0) + 1;
    };
  }

  collect(reading: Reading): () => void {
    return this.#readings.add(reading);
  }

  /** The text of all metrics that have a value. */
  async text(): Promise<string> {
    const values = await this.#readings.read();
    const lines: string[] = [];
    for (const metric of all) {
      const name = prometheusName(metric);
      const read = values.get(metric) ?? [];
      const samples = [
        ...this.#samples(metric),
        ...read.map(({ labels, value }) => `${name}${braced(written(metric, labels))} ${value}`),
      ];
      if (samples.length === 0) continue;
      lines.push(`# HELP ${name} ${metric.description}`, `# TYPE ${name} ${metric.kind}`, ...samples);
    }
    return `${lines.join("\n")}\n`;
  }

  #seriesOf(metric: Metric, labels: Labels): Series {
    let of = this.#series.get(metric);
    if (of === undefined) this.#series.set(metric, (of = new Map<string, Series>()));
    const key = written(metric, labels);
    const known = of.get(key);
    if (known !== undefined) return known;
    const text = of.size >= maxSeries ? "" : key;
    const overflow = of.get(text);
    if (overflow !== undefined) return overflow;
    const series = { labels: text, sum: 0, count: 0, buckets: metric.buckets?.map(() => 0).concat(0) ?? [] };
    of.set(text, series);
    return series;
  }

  #samples(metric: Metric): readonly string[] {
    const name = prometheusName(metric);
    return [...(this.#series.get(metric)?.values() ?? [])].flatMap(({ labels, sum, count, buckets }) => {
      if (metric.buckets === undefined) return [`${name}${braced(labels)} ${sum}`];
      let before = 0;
      const bounds = [...metric.buckets.map(String), "+Inf"];
      return [
        ...bounds.map((bound, at) => {
          before += buckets[at] ?? 0;
          return `${name}_bucket${braced(labels === "" ? `le="${bound}"` : `${labels},le="${bound}"`)} ${before}`;
        }),
        `${name}_sum${braced(labels)} ${sum}`,
        `${name}_count${braced(labels)} ${count}`,
      ];
    });
  }
}

function braced(labels: string): string {
  return labels === "" ? "" : `{${labels}}`;
}

/** Labels in the order of the metric, without those that are absent. */
function written(metric: Metric, labels: Labels): string {
  return metric.labels
    .flatMap((name) => {
      const value = labels[name];
      return value === undefined ? [] : [`${name.replaceAll(".", "_")}="${escaped(value)}"`];
    })
    .join(",");
}

function escaped(value: string): string {
  return value.replaceAll("\\", "\\\\").replaceAll("\n", "\\n").replaceAll('"', '\\"');
}
