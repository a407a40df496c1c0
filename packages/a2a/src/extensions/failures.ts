import type { Logger } from "../base/index.ts";
import { A2AError } from "../model/index.ts";
import type { AnyExtension } from "../protocol/index.ts";

/* What a hook that throws ends, and what it does not. */

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
  logger.warn("A hook of an extension failed, and the call goes on without it", {
    extension: extension.uri,
    hook,
    cause: thrown,
  });
}

/** Whether a hook or a schema has given a promise, of whatever library. */
export function isPromise(returned: unknown): returned is PromiseLike<unknown> {
  return typeof (returned as PromiseLike<unknown> | undefined | null)?.then === "function";
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
