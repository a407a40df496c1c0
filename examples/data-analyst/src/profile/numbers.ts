/** Statistics of a stream of numbers in a fixed amount of memory. The same stream gives the same result. */

/**
 * A sample of at most `limit` values, each as likely to be kept as any other (reservoir sampling). Its choices come from a generator with a
 * fixed seed, because a run that is repeated after a crash must find the same values.
 */
export interface Sample {
  readonly exact: boolean;
  add(value: number): void;
  /** The values so far, smallest first. */
  sorted(): Float64Array;
}

export function sampleOf(limit: number): Sample {
  const values: number[] = [];
  const random = seededRandom(0x5eed);
  let seen = 0;
  return {
    get exact() {
      return seen <= limit;
    },
    add(value) {
      seen += 1;
      if (values.length < limit) {
        values.push(value);
        return;
      }
      const place = Math.floor(random() * seen);
      if (place < limit) values[place] = value;
    },
    sorted: () => Float64Array.from(values).sort(),
  };
}

/** Mulberry32: 32 bits of state, plenty to choose which rows to keep. */
export function seededRandom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

/** The value below which the share `q` of sorted values lies, with linear interpolation. */
export function quantile(sorted: Float64Array, q: number): number {
  const place = (sorted.length - 1) * q;
  const below = sorted[Math.floor(place)] ?? NaN;
  const above = sorted[Math.ceil(place)] ?? NaN;
  return below + (above - below) * (place - Math.floor(place));
}

export interface Moments {
  readonly count: number;
  readonly min: number;
  readonly max: number;
  readonly sum: number;
  readonly mean: number;
  /** Of a sample: divided by one less than the count; 0 for a single value. */
  readonly stddev: number;
  add(value: number): void;
}

/** Count, bounds, sum, mean and spread; the mean by Welford's method, the sum by Neumaier's, so that long columns lose no digits. */
export function moments(): Moments {
  let count = 0;
  let min = Infinity;
  let max = -Infinity;
  let sum = 0;
  let lost = 0;
  let mean = 0;
  let squares = 0;
  return {
    get count() {
      return count;
    },
    get min() {
      return min;
    },
    get max() {
      return max;
    },
    get sum() {
      return tidy(sum + lost);
    },
    get mean() {
      return tidy(count === 0 ? NaN : mean);
    },
    get stddev() {
      return tidy(count < 2 ? 0 : Math.sqrt(squares / (count - 1)));
    },
    add(value) {
      count += 1;
      if (value < min) min = value;
      if (value > max) max = value;
      const total = sum + value;
      lost += Math.abs(sum) >= Math.abs(value) ? sum - total + value : value - total + sum;
      sum = total;
      const delta = value - mean;
      mean += delta / count;
      squares += delta * (value - mean);
    },
  };
}

/** Rounds to twelve significant digits: further ones are noise of binary fractions. */
export function tidy(value: number): number {
  return Number(value.toPrecision(12));
}
