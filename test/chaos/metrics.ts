/* The nodes' `/metrics`, and the dashboard that shows them. */

/**
 * Whether a value on the dashboard must match the history, or only stay within bounds (docs/decisions/chaos.md). The dashboard's other metrics
 * are rates and distributions, which the history does not contain.
 */
export const judged: Readonly<Record<string, "exact" | "bound">> = {
  parley_runs_active: "exact",
  parley_runs_resting: "exact",
  parley_queue_length: "exact",
  parley_queue_age_seconds: "exact",
  parley_tasks_waiting: "exact",
  parley_tasks_suspended: "exact",
  parley_webhooks_due: "exact",
  parley_webhooks_delay_seconds: "exact",
  parley_store_unreadable: "exact",
  parley_store_records_total: "bound",
  parley_webhook_delivery_duration_seconds_count: "bound",
  parley_lease_changes_total: "bound",
  gen_ai_invoke_agent_duration_seconds_count: "bound",
};

export const exact: readonly string[] = Object.keys(judged).filter((name) => judged[name] === "exact");

/** The time after which a node that has not answered counts as paused, in milliseconds. */
const timeout = 1_500;

/** Values by series. A series is a name with its labels. */
export type Samples = ReadonlyMap<string, number>;

function samplesOf(text: string): Samples {
  const lines = text.split("\n").filter((line) => line !== "" && !line.startsWith("#"));
  return new Map(
    lines.map((line) => {
      const end = line.lastIndexOf(" ");
      return [line.slice(0, end), Number(line.slice(end + 1))];
    }),
  );
}

/** Returns the sum of a metric over its labels. `label`: only series with this label. */
export function sumOf(samples: Samples, name: string, label = ""): number {
  let sum = 0;
  for (const [series, value] of samples) {
    if (series === name || (series.startsWith(`${name}{`) && series.includes(label))) sum += value;
  }
  return sum;
}

/** Reads one node's counters like Prometheus, over successive processes. Counts of a killed process since its last reading are lost. */
export class Scraper {
  readonly #url: string;
  #last: Samples = new Map();
  readonly #total = new Map<string, number>();
  /** Readings run one at a time, because an older reading that arrives late would seem to come from another process. */
  #reading: Promise<unknown> = Promise.resolve();

  constructor(port: number) {
    this.#url = `http://127.0.0.1:${port}/metrics`;
  }

  /** The increases of all series since the start, according to the readings. */
  get total(): Samples {
    return this.#total;
  }

  /** Reads the metrics. `undefined` if the node does not answer. */
  scrape(): Promise<Samples | undefined> {
    const reading = this.#reading.then(() => this.#scrape());
    this.#reading = reading;
    return reading;
  }

  async #scrape(): Promise<Samples | undefined> {
    let samples: Samples;
    try {
      const response = await fetch(this.#url, { signal: AbortSignal.timeout(timeout) });
      if (!response.ok) return undefined;
      samples = samplesOf(await response.text());
    } catch {
      return undefined;
    }
    for (const [series, value] of samples) {
      const before = this.#last.get(series) ?? 0;
      // A smaller value comes from a new process.
      this.#total.set(series, (this.#total.get(series) ?? 0) + (value < before ? value : value - before));
    }
    this.#last = samples;
    return samples;
  }
}
