import { A2AError } from "../model/index.ts";

/* How a turn is told that its result is no longer wanted. */

/**
 * Why the result of a turn is no longer wanted:
 * - `canceled`: the task was canceled.
 * - `idleTimeout`: the agent yielded nothing for too long. The task has failed.
 * - `turnTimeout`: the turn took too long. The task has failed.
 * - `leaseLost`: another process has taken the task over, and may run its turn again.
 * - `shutdown`: this server stops. A resumable task continues elsewhere, any other task has failed.
 * - `storeFailed`: what was yielded could not be stored.
 * - `failed`: the agent threw, or yielded what the protocol forbids. The task has failed.
 * - `waits`: the turn waits, or its question is open, and its function is called again. `turn.step()` throws this in a `finally`, where a step
 *   does not begin any more; the signal is not aborted with it.
 * - `over`: the turn had already ended when the signal was first read.
 */
export type TurnAbortKind =
  | "canceled"
  | "idleTimeout"
  | "turnTimeout"
  | "leaseLost"
  | "shutdown"
  | "storeFailed"
  | "failed"
  | "waits"
  | "over";

/**
 * The reason of an aborted `turn.signal`. `turn.signal.throwIfAborted()` throws it, and so does a `fetch` that was given the
 * signal. Its `code` is `Aborted`. There is no need to catch it: the engine ignores what an aborted turn throws.
 *
 * @example
 * ```ts
 * turn.signal.addEventListener("abort", () => {
 *   if (turn.signal.reason?.kind === "canceled") void stopJob();
 * });
 * ```
 */
export class TurnAborted extends A2AError {
  /** Why the turn was aborted. */
  readonly kind: TurnAbortKind;

  /** The engine makes these. Tests of agents may make one. */
  constructor(kind: TurnAbortKind, message: string, options?: { readonly cause?: unknown }) {
    super("Aborted", message, options);
    this.kind = kind;
  }
}

/** An `AbortSignal` whose reason is a `TurnAborted`. */
export interface TurnSignal extends AbortSignal {
  /** Why the turn was aborted. `undefined` until then. */
  readonly reason: TurnAborted | undefined;
}
