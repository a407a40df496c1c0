import { DBOS } from "@dbos-inc/dbos-sdk";
import { defineAgent, type Agent, type Interceptor } from "@parley/node";
import { z } from "zod";
import { answers } from "./workflow.ts";

const report = z.object({ kind: z.enum(["progress", "ask", "end", "refused"]), text: z.string() });

/** An agent in front of a workflow. A task has one workflow, with its id. */
export function orderDesk(order: (item: string) => Promise<void>): Agent {
  return defineAgent({
    name: "Order desk",
    description: "Buys things. The work is a workflow on DBOS.",
    version: "1.0.0",
    skills: [{ id: "buy", name: "Buy", description: "Buys one thing, when you agree to its price", tags: ["shop"] }],
    resumable: true,
    async *onMessage(turn) {
      const start = async (): Promise<void> => {
        await DBOS.startWorkflow(order, { workflowID: turn.taskId })(turn.text);
      };
      // Both may be repeated after a crash: DBOS starts one workflow for one id, and takes one message for one key.
      if (turn.number === 1) await turn.step("start", start);
      else await DBOS.send(turn.taskId, turn.text, answers, turn.message.messageId);
      const last = {
        ask: (text: string) => turn.inputRequired(text),
        refused: (text: string) => turn.rejected(text),
        end: (text: string) => turn.completed(text),
      };
      for (;;) {
        // Until the workflow reports, the task is a few rows, and no process runs it.
        const { kind, text } = yield* turn.waitFor("report", { schema: report });
        if (kind === "progress") yield turn.working(text, { keep: true });
        else {
          yield last[kind](text);
          return;
        }
      }
    },
  });
}

/** Cancels the workflow of a task that a client has canceled. */
export const cancelOrders: Interceptor = (next) => ({
  async call(operation, request, context) {
    const reply = await next.call(operation, request, context);
    if (operation === "CancelTask") await DBOS.cancelWorkflow((request as { readonly id: string }).id);
    return reply;
  },
  stream: (operation, request, context) => next.stream(operation, request, context),
});
