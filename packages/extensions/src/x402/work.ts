import type { AgentYield } from "@parley/a2a/internal/protocol/index";
import { mistake, PaymentRequired, type Work } from "./price.ts";

/**
 * Does the work of a charge. Where it asks its user a question, the turn ends here, and the next one does the work again, with the payment
 * that is verified.
 *
 * @param order - What was priced.
 */
export async function* worked<Result, Order>(
  work: Work<Result, Order> | undefined,
  order: Order,
): AsyncGenerator<AgentYield, Result, void> {
  const output = work?.(order);
  if (!isGenerator<Result>(output)) return (await output) as Result;
  let asked = false;
  try {
    for (;;) {
      const step = await output.next();
      if (step.done === true) {
        if (asked) throw new PaymentRequired();
        return step.value;
      }
      for (const event of Array.isArray(step.value) ? step.value : [step.value]) {
        const { kind, state } = event as { readonly kind?: string; readonly state?: string };
        // The engine would end the function there, and nothing would be settled.
        if (kind === "reply" || state === "TASK_STATE_COMPLETED") {
          throw mistake("the work must not complete the task: charge() does, after the settlement");
        }
        asked ||= state === "TASK_STATE_INPUT_REQUIRED";
      }
      yield step.value;
    }
  } finally {
    await output.return(undefined as never);
  }
}

function isGenerator<Result>(output: unknown): output is AsyncGenerator<AgentYield, Result, void> {
  return typeof output === "object" && output !== null && Symbol.asyncIterator in output;
}
