/** Ports that every room needs. This room imports nothing. */

/** Structured fields of a log line; `cause` holds an error with its stack. */
export interface LogFields {
  readonly [name: string]: unknown;
}

/** Where a library may speak. The default says nothing: a library never writes to the console of its host. */
export interface Logger {
  debug(message: string, fields?: LogFields): void;
  info(message: string, fields?: LogFields): void;
  warn(message: string, fields?: LogFields): void;
  error(message: string, fields?: LogFields): void;
}

export const silentLogger: Logger = {
  debug() {},
  info() {},
  warn() {},
  error() {},
};

/** Bytes in memory of their own, as `fetch` takes them. Before TypeScript 5.7 `Uint8Array` cannot be given its buffer's type. */
export type Bytes = Uint8Array & { readonly buffer: ArrayBuffer };

/** Time, so that a test can hold it still. */
export interface Clock {
  /**
   * Wall time, in milliseconds since the Unix epoch: for what somebody else reads. It can be set, by an hour too, so it
   * measures nothing.
   */
  now(): number;
  /** Monotonic time, in milliseconds since some moment: for intervals. It only goes on, whatever the wall clock does. */
  elapsed(): number;
  /** Calls `run` once after `ms` milliseconds; the returned function takes it back. Must not keep a process alive. */
  after(ms: number, run: () => void): () => void;
}

export const systemClock: Clock = {
  now: () => Date.now(),
  elapsed: () => performance.now(),
  after(ms, run) {
    const timer = setTimeout(run, ms) as unknown as number | { unref?(): unknown };
    // Node's timers hold the process open unless told otherwise; other runtimes return a number.
    if (typeof timer === "object") timer.unref?.();
    return () => clearTimeout(timer as number);
  },
};

export { defer } from "./defer.ts";
export { deferred, type Deferred } from "./deferred.ts";
export { once } from "./once.ts";
export { isLoopback } from "./loopback.ts";
export { randomIds, timeOrderedIds, type Ids } from "./ids.ts";
export { utf8Length } from "./utf8-length.ts";
