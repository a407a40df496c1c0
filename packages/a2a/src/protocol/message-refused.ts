import { A2AError, partsOf, withFields, type Content, type FieldViolation, type Part } from "../model/index.ts";

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
