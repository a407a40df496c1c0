/* Interfaces and helpers for all folders. This folder imports no other. */

export { Apart, defer, deferred, leavable, once, Waiters, type Resolver } from "./async.ts";
export { isLoopback, withoutQuery, withoutSlashes } from "./http.ts";
export { deepFreeze } from "./json.ts";
export { utf8Length, type Bytes } from "./bytes.ts";

/** Structured fields of a log line; `cause` holds an error with its stack. */
export interface LogFields {
  readonly [name: string]: unknown;
}

/** Receives log lines, such as pino behind a small adapter. The default writes nothing. */
export interface Logger {
  /** Details for developers. */
  debug(message: string, fields?: LogFields): void;
  /** An event of normal operation. */
  info(message: string, fields?: LogFields): void;
  /** An event that an operator should look at, such as a reached limit. */
  warn(message: string, fields?: LogFields): void;
  /** A failure. */
  error(message: string, fields?: LogFields): void;
}

/** A logger that writes nothing: the default everywhere. */
export const silentLogger: Logger = {
  debug() {},
  info() {},
  warn() {},
  error() {},
};

/** A key of WebCrypto. The types of Node have no global name for it. */
export type WebKey = Awaited<ReturnType<typeof crypto.subtle.importKey>>;

/** Time. Tests replace it with `fakeClock()` of `@parley/testing`. */
export interface Clock {
  /** Wall time, in milliseconds since the Unix epoch, to store or send. It can jump: do not measure intervals with it. */
  now(): number;
  /** Monotonic time, in milliseconds since an arbitrary moment, for intervals. It never goes backwards. */
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

/** Node's timers keep the process alive unless `unref()` is called; other runtimes return a number. */
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

/** Makes identifiers of tasks, contexts and messages. They must not be guessable. */
export interface Ids {
  /** A new identifier. */
  next(): string;
}

/** Random UUIDs (version 4). */
export const randomIds: Ids = { next: () => crypto.randomUUID() };

/** UUIDs of version 7 (RFC 9562 §5.7), which sort by time: SQLite writes a sixth less for a task than with version 4. */
export function timeOrderedIds(): Ids {
  let time = 0;
  let prefix = "";
  const tails = randomTails();
  return {
    next() {
      const now = Date.now();
      if (now !== time) {
        time = now;
        const hex = now.toString(16).padStart(12, "0");
        prefix = `${hex.slice(0, 8)}-${hex.slice(8)}-7`;
      }
      return prefix + tails();
    },
  };
}

/**
 * Makes the random part of ids: 128 of them at a time, as one text that is then sliced. `crypto.randomUUID()` and the package
 * `uuid` allocate ten times as much and break the budget "bytes of message" in test/budgets.
 */
function randomTails(): () => string {
  const count = 128;
  const pattern = "xxx-yxxx-xxxxxxxxxxxx";
  const length = pattern.length;
  const digits = new TextEncoder().encode("0123456789abcdef");
  const decoder = new TextDecoder();
  const bytes = new Uint8Array(count * length);
  let tails = "";
  let used = 0;
  const refill = (): void => {
    crypto.getRandomValues(bytes);
    for (let at = 0; at < bytes.length; at++) {
      const kind = pattern[at % length];
      const random = (bytes[at] ?? 0) & 15;
      // The variant's two upper bits are 10 (RFC 9562 §4.1).
      bytes[at] = kind === "-" ? 0x2d : (digits[kind === "y" ? 8 | (random & 3) : random] ?? 0);
    }
    tails = decoder.decode(bytes);
    used = 0;
  };
  return () => {
    if (used === tails.length) refill();
    const tail = tails.slice(used, used + length);
    used += length;
    return tail;
  };
}
