import {
  A2AError,
  partsOf,
  withFields,
  type Content,
  type FieldViolation,
  type Part,
  type Task,
} from "../model/index.ts";

/* Errors that abort a turn, or that a turn throws. */

/**
 * Why the result of a turn is no longer wanted:
 * - `canceled`: the task was canceled.
 * - `idleTimeout`: the agent yielded nothing for too long. The task has failed.
 * - `turnTimeout`: the turn took too long. The task has failed.
 * - `leaseLost`: another process has taken the task over, and may run its turn again.
 * - `shutdown`: this server stops. A resumable task continues elsewhere, any other task has failed.
 * - `storeFailed`: the yielded events could not be stored.
 * - `failed`: the agent threw, or yielded something invalid. The task has failed.
 * - `waits`: the turn waits, or its question is open, and its function will be called again. `turn.step()` throws this in a `finally`, where no step
 *   begins anymore; the signal is not aborted.
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
 * The reason of an aborted `turn.signal`, with the code `Aborted`. `throwIfAborted()` and a `fetch` with the signal throw it.
 * You need not catch it: the engine ignores errors of an aborted turn.
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

  /** Created by the engine. Tests of agents may create one. */
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

/**
 * Thrown by an agent that cannot use the message, and by `turn.data()`. The client gets `InvalidParams` if the message has no task, or else a
 * question (INPUT_REQUIRED).
 *
 * @example
 * ```ts
 * import * as z from "zod";
 *
 * const { from, to } = await turn.data(z.object({ from: z.string(), to: z.string() }));
 * if (from > to) throw new MessageRefused([{ field: "message.parts[0].data.to", description: "is before the beginning" }]);
 * ```
 */
export class MessageRefused extends A2AError {
  /** The question. `undefined`: a message without a task creates none. */
  readonly ask: readonly Part[] | undefined;

  /**
   * `fields`: the problems, for the client. Do not repeat values, which may be secrets. `ask`: a question, even for a message
   * without a task.
   */
  constructor(fields: readonly FieldViolation[], options: { readonly ask?: Content | undefined } = {}) {
    super("InvalidParams", withFields("The message cannot be used", fields), { fields });
    this.ask = options.ask === undefined ? undefined : partsOf(options.ask);
  }
}

/**
 * Another agent failed at its task. `turn.delegate()` throws it. If it is not caught, the task fails with a
 * message that names the other agent.
 *
 * @example
 * ```ts
 * try {
 *   yield* turn.delegate(hotels, "A room in Basel");
 * } catch (error) {
 *   if (!(error instanceof DelegationFailed)) throw error;
 *   yield turn.artifact({ parts: [text("No hotel found")] });
 * }
 * ```
 */
export class DelegationFailed extends A2AError {
  /**
   * - `failed`, `rejected`, `canceled`: the final state of its task.
   * - `refused`: it rejected the message, or could not be reached; `cause` is the error.
   * - `uncertain`: after a crash it is not known whether the message arrived.
   * - `loop`: the message passed through too many agents.
   */
  readonly kind: "failed" | "rejected" | "canceled" | "refused" | "uncertain" | "loop";
  /** The task of the other agent, if it created one. */
  readonly task: Task | undefined;
  /**
   * Whether the other agent certainly did no work: it was unreachable, failed before any work, or rejected the message immediately. It is then safe
   * to ask another agent.
   */
  readonly untaken: boolean;

  /** Created by `turn.delegate()`. Tests of agents may create one. */
  constructor(
    kind: DelegationFailed["kind"],
    message: string,
    options: {
      readonly task?: Task | undefined;
      readonly cause?: unknown;
      readonly untaken?: boolean | undefined;
    } = {},
  ) {
    super("InternalError", message, { cause: options.cause });
    this.kind = kind;
    this.task = options.task;
    this.untaken = options.untaken === true;
  }
}

/** The error for readers of a run that the server has abandoned. The server logs it once, with the number of runs. */
export class RunGivenUp extends A2AError {
  constructor(cause: unknown, retryAfter: number) {
    super("Unavailable", undefined, { cause, retryAfter });
  }
}

/** The error for callers and readers while a server stops. It is not a failure, and each of them gets it once. */
export class ServerIsStopping extends A2AError {
  constructor(message: string, retryAfter?: number) {
    super("Unavailable", message, { retryAfter });
  }
}
