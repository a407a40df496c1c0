/** Latencies in milliseconds. */
export interface Latencies {
  readonly p50: number;
  readonly p99: number;
}

export function summary(latencies: readonly number[]): Latencies {
  const sorted = Float64Array.from(latencies).sort();
  return { p50: quantile(sorted, 0.5), p99: quantile(sorted, 0.99) };
}

/** A quantile of sorted values: the smallest value that is not below this share of the values. */
export function quantile(sorted: ArrayLike<number>, share: number): number {
  return sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)] ?? Number.NaN;
}
