/* When a delivery is tried again (docs/decisions/webhooks.md). */

const day = 24 * 60 * 60 * 1000;
/** Each wait is longer or shorter by up to this share, so that what failed together does not come back together. */
const jitter = 0.2;
/** No wait is longer, whatever the options say: a row that is due later has been put off by a clock that was set back since. */
const longest = 30 * day;

/**
 * How long to wait after a failed attempt, in milliseconds; `undefined`: there is no attempt left.
 *
 * @param failures - How many attempts of this delivery failed, this one included.
 * @param waits - Waits between attempts, in milliseconds.
 * @param retryAfter - What the receiver asked for, in seconds. It counts for a day at most.
 * @param random - A random number from 0 to 1.
 */
export function waitAfter(
  failures: number,
  waits: readonly number[],
  retryAfter: number | undefined,
  random: number,
): number | undefined {
  const wait = waits[failures - 1];
  if (wait === undefined) return undefined;
  const own = wait * (1 - jitter + 2 * jitter * random);
  const asked = Math.min(day, (retryAfter ?? 0) * 1000);
  return Math.ceil(Math.min(longest, Math.max(own, asked)));
}

/** The longest wait that `waitAfter` returns. */
export function longestWait(waits: readonly number[]): number {
  return Math.ceil(Math.min(longest, waits.reduce((most, wait) => Math.max(most, wait), day) * (1 + jitter)));
}
