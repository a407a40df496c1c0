/* Ports and helpers that every room may use. This room imports no other. */

export { Apart, defer, deferred, leavable, once, Waiters, type Resolver } from "./async.ts";
export { isLoopback, withoutQuery, withoutSlashes } from "./http.ts";
export { randomIds, timeOrderedIds, type Ids } from "./ids.ts";
export { deepFreeze } from "./json.ts";
export { utf8Length } from "./utf8.ts";

/** Structured fields of a log line; `cause` holds an error with its stack. */
export interface LogFields {
  readonly [name: string]: unknown;
}

/** Where log lines go, such as pino behind a small adapter. The default writes nothing. */
export interface Logger {
  /** Details for developers. */
  debug(message: string, fields?: LogFields): void;
  /** What happens in normal operation. */
  info(message: string, fields?: LogFields): void;
  /** Something that an operator should look at, such as a limit that was reached. */
  warn(message: string, fields?: LogFields): void;
  /** Something that failed. */
  error(message: string, fields?: LogFields): void;
}

/** A logger that writes nothing: the default everywhere. */
export const silentLogger: Logger = {
  debug() {},
  info() {},
  warn() {},
  error() {},
};

/** Bytes in an `ArrayBuffer`, as `fetch` takes them. Before TypeScript 5.7 `Uint8Array` has no parameter for its buffer. */
export type Bytes = Uint8Array & {
  /** The buffer. */
  readonly buffer: ArrayBuffer;
};

/** A key of WebCrypto. The types of Node have no global name for it. */
export type WebKey = Awaited<ReturnType<typeof crypto.subtle.importKey>>;

/** Time. Tests replace it with `fakeClock()` of `@parley/testing`. */
export interface Clock {
  /** Wall time, in milliseconds since the Unix epoch, for others to read. It can jump: do not measure intervals with it. */
  now(): number;
  /** Monotonic time, in milliseconds since an arbitrary moment, for intervals. It never goes back. */
  elapsed(): number;
  /** Calls `run` once after `ms` milliseconds. The returned function cancels it. It must not keep a process alive. */
  after(ms: number, run: () => void): () => void;
}

/** The clock of the runtime: the default everywhere. */
export const systemClock: Clock = {
  now: () => Date.now(),
  elapsed: () => performance.now(),
  after(ms, run) {
    const timer = setTimeout(run, ms);
    release(timer);
    return () => clearTimeout(timer);
  },
};

/** Node's timers hold the process open unless told otherwise; other runtimes return a number. */
function release(timer: number | { unref?(): unknown }): void {
  if (typeof timer === "object") timer.unref?.();
}

/** An object with the same members and other values. */
export function mapValues<From, To>(
  from: Readonly<Record<string, From>>,
  map: (value: From) => To,
): Readonly<Record<string, To>> {
  return Object.fromEntries(Object.entries(from).map(([name, value]) => [name, map(value)]));
}

/** A logger that adds fields to each line. Fields of the line itself take precedence. */
export class FieldsLogger implements Logger {
  readonly #logger: Logger;
  readonly #fields: () => LogFields;

  /** `fields`: called for each line. */
  constructor(logger: Logger, fields: () => LogFields) {
    this.#logger = logger;
    this.#fields = fields;
  }

  debug(message: string, fields?: LogFields): void {
    this.#logger.debug(message, { ...this.#fields(), ...fields });
  }

  info(message: string, fields?: LogFields): void {
    this.#logger.info(message, { ...this.#fields(), ...fields });
  }

  warn(message: string, fields?: LogFields): void {
    this.#logger.warn(message, { ...this.#fields(), ...fields });
  }

  error(message: string, fields?: LogFields): void {
    this.#logger.error(message, { ...this.#fields(), ...fields });
  }
}
