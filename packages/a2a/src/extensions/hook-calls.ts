import type { Logger, Clock, LogFields } from "../base/index.ts";
import { A2AError } from "../model/index.ts";
import type { AnyExtension } from "../protocol/index.ts";
import { BoundedMap, memoryOf } from "../base/bounded-map.ts";

/* How hooks run: what a failing one ends, how long one may take, and what is logged. */

/** Whether an extension may fail nothing: its failures are log lines. */
export function isHarmless({ kind }: AnyExtension): boolean {
  return kind === "data";
}

/** An error of the protocol is for the caller; of anything else the operator is told whose it is. */
export function failed({ uri }: AnyExtension, hook: string, thrown: unknown): A2AError {
  if (thrown instanceof A2AError) return thrown;
  const cause = new Error(`${hook} of the extension ${uri} failed: ${String(thrown)}`, { cause: thrown });
  return new A2AError("InternalError", undefined, { cause });
}

/** What writes the lines about failures that end nothing. */
export type Warns = Pick<Logger, "warn">;

/** Ends the call with what a hook has thrown, or writes a log line where the extension may fail nothing. */
export function fails(extension: AnyExtension, hook: string, thrown: unknown, logger: Warns): void {
  if (!isHarmless(extension)) throw failed(extension, hook, thrown);
  logger.warn("Extension hook failed; continuing without it", {
    extension: extension.uri,
    hook,
    cause: thrown,
  });
}

/** Whether a hook or a schema has given a promise, of whatever library. */
export function isPromise(returned: unknown): returned is PromiseLike<unknown> {
  const mayHave = typeof returned === "function" || (typeof returned === "object" && returned !== null);
  return mayHave && "then" in returned && typeof returned.then === "function";
}

/** Without a handler the rejection of a hook that gave a promise where none is taken would end the process. */
export function unhandled(returned: unknown): void {
  if (isPromise(returned)) returned.then(undefined, () => undefined);
}

/** What a hook returned that has to answer at once. Throws a `TypeError` for a promise. */
export function atOnce<T>(returned: T, what: string): T {
  if (!isPromise(returned)) return returned;
  unhandled(returned);
  throw new TypeError(`It returned a promise in place of ${what}`);
}

/** A copy for a hook, so that its changes affect only itself. */
export function copyFor<T extends object>(value: T): T {
  try {
    return structuredClone(value);
  } catch {
    // What a program or an agent has made is not JSON, and fails when it is stored or sent.
    return value;
  }
}

/** How long what a hook waits for may take. */
export interface HookTime {
  readonly clock: Clock;
  /** In milliseconds: `limits.hookTimeout`. */
  readonly limit: number;
}

/** Maximum delay of a JavaScript timer, in milliseconds. */
const longest = 2 ** 31 - 1;

/** What a hook waits for, or a rejection where it has not settled in time. What it gives after that is dropped. */
export function inTime<T>(work: PromiseLike<T>, { clock, limit }: HookTime): Promise<T> {
  if (limit > longest) return Promise.resolve(work);
  return new Promise((resolve, reject) => {
    const stop = clock.after(limit, () => reject(new Error(`It has not settled within ${limit} ms`)));
    Promise.resolve(work).then(resolve, reject).finally(stop);
  });
}

/** Memory of the failures that were logged, in bytes. A forgotten one is logged again. */
const rememberedBytes = 1 << 20;

/** Tells of each failure of an extension once for a task: an agent may yield any number of events, and each fails alike. */
export class ToldByTask {
  readonly #told = new BoundedMap<string>({ bytes: rememberedBytes, bytesOf: memoryOf });

  /** What tells of the failures in a task. `undefined`: a direct reply, which makes no task, and has one event. */
  of(taskId: string | undefined, logger: Logger): Warns {
    if (taskId === undefined) return logger;
    return { warn: (message, fields = {}) => this.#warn(taskId, logger, message, fields) };
  }

  #warn(taskId: string, logger: Logger, message: string, fields: LogFields): void {
    const key = JSON.stringify([taskId, fields["extension"], fields["hook"], message, fields["problems"]]);
    if (this.#told.get(key) !== undefined) return;
    this.#told.set(key, "");
    logger.warn(message, { ...fields, taskId });
  }
}
