import type { Clock } from "../base/index.ts";

/** How long what a hook waits for may take. */
export interface HookTime {
  readonly clock: Clock;
  /** In milliseconds: `limits.hookTimeout`. */
  readonly limit: number;
}

/** Timers of JavaScript hold no longer time, in milliseconds. */
const longest = 2 ** 31 - 1;

/** What a hook waits for, or a rejection where it has not settled in time. What it gives after that is dropped. */
export function inTime<T>(work: PromiseLike<T>, { clock, limit }: HookTime): Promise<T> {
  if (limit > longest) return Promise.resolve(work);
  return new Promise((resolve, reject) => {
    const stop = clock.after(limit, () => reject(new Error(`It has not settled within ${limit} ms`)));
    Promise.resolve(work).then(resolve, reject).finally(stop);
  });
}
