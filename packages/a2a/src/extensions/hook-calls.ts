import type { Logger, Clock, LogFields } from "../base/index.ts";
import { A2AError } from "../model/index.ts";
import type { AnyExtension } from "../protocol/index.ts";
import { BoundedMap, memoryOf } from "../base/bounded-map.ts";

/* Runs hooks: failures, time limits, and logs. */

/** Whether failures of an extension are only logged, and never fail a call. */
export function isHarmless({ kind }: AnyExtension): boolean {
  return kind === "data";
}

/** The error of a failing hook. The caller gets an `A2AError` unchanged; any other error names the extension for the operator. */
export function failed({ uri }: AnyExtension, hook: string, thrown: unknown): A2AError {
  if (thrown instanceof A2AError) return thrown;
  const cause = new Error(`${hook} of the extension ${uri} failed: ${String(thrown)}`, { cause: thrown });
  return new A2AError("InternalError", undefined, { cause });
}

/** Logs failures that do not fail the call. */
export type Warns = Pick<Logger, "warn">;

/** Throws the error of a hook, or only logs it for extensions that must not fail calls. */
export function fails(extension: AnyExtension, hook: string, thrown: unknown, logger: Warns): void {
  if (!isHarmless(extension)) throw failed(extension, hook, thrown);
  logger.warn("Extension hook failed; continuing without it", {
    extension: extension.uri,
    hook,
    cause: thrown,
  });
}

/** Whether a hook or a schema returned a promise, of any library. */
export function isPromise(returned: unknown): returned is PromiseLike<unknown> {
  const mayHave = typeof returned === "function" || (typeof returned === "object" && returned !== null);
  return mayHave && "then" in returned && typeof returned.then === "function";
}

/** Attaches a handler to a promise from a synchronous hook, because its rejection would end the process. */
export function unhandled(returned: unknown): void {
  if (isPromise(returned)) returned.then(undefined, () => undefined);
}

/** The result of a synchronous hook. Throws a `TypeError` for a promise. */
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
    // The value is not JSON, so it fails later, when it is stored or sent.
    return value;
  }
}

/** The time limit of asynchronous hooks. */
export interface HookTime {
  readonly clock: Clock;
  /** In milliseconds: `limits.hookTimeout`. */
  readonly limit: number;
}

/** Maximum delay of a JavaScript timer, in milliseconds. */
const longest = 2 ** 31 - 1;

/** The promise of a hook. Rejects if it does not settle in time; a later result is dropped. */
export function inTime<T>(work: PromiseLike<T>, { clock, limit }: HookTime): Promise<T> {
  if (limit > longest) return Promise.resolve(work);
  return new Promise((resolve, reject) => {
    const stop = clock.after(limit, () => reject(new Error(`It has not settled within ${limit} ms`)));
    Promise.resolve(work).then(resolve, reject).finally(stop);
  });
}

/** Memory of the failures that were logged, in bytes. A forgotten failure is logged again. */
const rememberedBytes = 1 << 20;

/** Logs each failure of an extension once per task, because an agent may yield any number of events, and all may fail alike. */
export class ToldByTask {
  readonly #told = new BoundedMap<string>({ bytes: rememberedBytes, bytesOf: memoryOf });

  /** The logger for failures in a task. `undefined`: a direct reply, which has no task and only one event. */
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
