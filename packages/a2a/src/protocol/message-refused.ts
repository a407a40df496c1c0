import {
  A2AError,
  partsOf,
  withFields,
  type Content,
  type FieldViolation,
  type Part,
  type Task,
} from "../model/index.ts";

/**
 * Thrown by an agent that cannot use the message of its turn, as `turn.data()` does. The client learns why: as an error
 * `InvalidParams` where the message has no task, and else as a question (INPUT_REQUIRED), which its next message answers.
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
  /** The question. `undefined`: where there is no task, none is made. */
  readonly ask: readonly Part[] | undefined;

  /**
   * @param fields - What is wrong, as a client may read it. Do not repeat values: they may be secrets.
   * @param options - `ask`: a question, for a message without a task as well.
   */
  constructor(fields: readonly FieldViolation[], options: { readonly ask?: Content | undefined } = {}) {
    super("InvalidParams", withFields("The message cannot be used", fields), { fields });
    this.ask = options.ask === undefined ? undefined : partsOf(options.ask);
  }
}

/**
 * Another agent did not do what it was asked for. `turn.delegate()` throws it. Nobody has to catch it: the task then fails with a
 * sentence that names the other agent.
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
   * - `failed`, `rejected`, `canceled`: its task ended so.
   * - `refused`: it refused the message, or could not be reached; the cause has the error.
   * - `uncertain`: after a crash it is not known whether the message arrived.
   * - `loop`: the message has come through too many agents.
   */
  readonly kind: "failed" | "rejected" | "canceled" | "refused" | "uncertain" | "loop";
  /** The task of the other agent, where it made one. */
  readonly task: Task | undefined;
  /**
   * Whether the other agent certainly has not begun with the work: it could not be reached, it answered with an error that comes before any work,
   * or it rejected its task at once. Another agent may then be asked, and nothing is done twice.
   */
  readonly untaken: boolean;

  /** `turn.delegate()` makes these. Tests of agents may make one. */
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
