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

/** Ends the call with what a hook has thrown, or writes a log line where the extension may fail nothing. */
export function fails(extension: AnyExtension, hook: string, thrown: unknown, logger: Logger): void {
  if (!isHarmless(extension)) throw failed(extension, hook, thrown);
  logger.warn("A hook of an extension failed, and the call goes on without it", {
    extension: extension.uri,
    hook,
    cause: thrown,
  });
}

/** Without a handler the rejection of a hook that gave a promise where none is taken would end the process. */
export function unhandled(returned: unknown): void {
  if (returned instanceof Promise) returned.catch(() => undefined);
}

/** What a hook returned that has to answer at once. Throws a `TypeError` for a promise. */
export function atOnce<T>(returned: T, what: string): T {
  if (!(returned instanceof Promise)) return returned;
  unhandled(returned);
  throw new TypeError(`It returned a promise in place of ${what}`);
}
