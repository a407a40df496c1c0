import { Agent } from "@mastra/core/agent";
import { createTool } from "@mastra/core/tools";
import { idempotencyOf } from "@parley/frameworks/mastra";
import * as z from "zod";
import { scriptedModel } from "./model.ts";

/** Stands in for a bank: payments by idempotency key. */
const payments = new Map<string, { receipt: number }>();

const invoice = createTool({
  id: "invoice",
  description: "Finds an invoice by its number",
  inputSchema: z.object({ number: z.number() }),
  execute: async ({ number }) => ({ number, amount: number * 10, currency: "CHF" }),
});

const pay = createTool({
  id: "pay",
  description: "Pays an invoice",
  inputSchema: z.object({ number: z.number(), amount: z.number() }),
  requireApproval: true,
  execute: async (_, context) => {
    const key = idempotencyOf(context)?.key ?? crypto.randomUUID();
    const payment = payments.get(key) ?? { receipt: payments.size + 1 };
    payments.set(key, payment);
    return payment;
  },
});

/** An ordinary Mastra agent. */
export const bursar = new Agent({
  id: "bursar",
  name: "Bursar",
  // For a real model, set its id, such as AI_MODEL=openai/gpt-5.
  model: process.env["AI_MODEL"] ?? scriptedModel,
  instructions: "You are a bursar. Look up the invoice, pay it, and tell the receipt.",
  tools: { invoice, pay },
});
