import { idempotencyOf } from "@parley/frameworks/ai-sdk";
import { tool, ToolLoopAgent } from "ai";
import * as z from "zod";
import { scriptedModel } from "./model.ts";

/** Stands in for a bank: payments by idempotency key. */
const payments = new Map<string, { receipt: number }>();

/** An ordinary agent for the AI SDK. */
export const bursar = new ToolLoopAgent({
  // For a real model, set its AI Gateway id, such as AI_MODEL=openai/gpt-5.
  model: process.env["AI_MODEL"] ?? scriptedModel,
  instructions: "You are a bursar. Look up the invoice, pay it, and tell the receipt.",
  tools: {
    invoice: tool({
      description: "Finds an invoice by its number",
      inputSchema: z.object({ number: z.number() }),
      execute: ({ number }) => ({ number, amount: number * 10, currency: "CHF" }),
    }),
    pay: tool({
      description: "Pays an invoice",
      inputSchema: z.object({ number: z.number(), amount: z.number() }),
      needsApproval: true,
      execute: (_, options) => {
        const key = idempotencyOf(options)?.key ?? options.toolCallId;
        const payment = payments.get(key) ?? { receipt: payments.size + 1 };
        payments.set(key, payment);
        return payment;
      },
    }),
  },
});
