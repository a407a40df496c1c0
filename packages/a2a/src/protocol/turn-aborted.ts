import { A2AError } from "../model/index.ts";

/**
 * Why nothing more of a turn counts:
 * - `canceled`: somebody canceled the task.
 * - `idleTimeout`, `turnTimeout`: the agent was silent, or the turn went on, for too long. The task has failed.
 * - `leaseLost`: another process has taken the task over, and may be running its turn again.
 * - `shutdown`: this server stops. A resumable task goes on elsewhere, any other has failed.
 * - `storeFailed`: what was yielded could not be stored.
 * - `failed`: the agent threw, or yielded what the protocol forbids. The task has failed.
 * - `over`: the turn had come to its end before anyone asked.
 */
export type TurnAbortKind =
  "canceled" | "idleTimeout" | "turnTimeout" | "leaseLost" | "shutdown" | "storeFailed" | "failed" | "over";

/** What `turn.signal` is aborted with, and so what `turn.signal.throwIfAborted()` and an aborted `fetch` throw. */
export class TurnAborted extends A2AError {
  readonly kind: TurnAbortKind;

  constructor(kind: TurnAbortKind, message: string, options?: { readonly cause?: unknown }) {
    super("Aborted", message, options);
    this.kind = kind;
  }
}

/** An `AbortSignal` that says in its type what it is aborted with. */
export interface TurnSignal extends AbortSignal {
  /** Absent until the signal is aborted. */
  readonly reason: TurnAborted | undefined;
}
