import { Agent, tool } from "@openai/agents";
import { fromOpenAIAgent, idempotencyOf } from "@parley/frameworks/openai-agents";
import type { Agent as A2AAgent } from "@parley/node";
import * as z from "zod";
import { scriptedModel } from "./model.ts";

/** Stands in for a bank: payments by idempotency key. */
const payments = new Map<string, { receipt: number }>();

const invoice = tool({
  name: "invoice",
  description: "Finds an invoice by its number",
  parameters: z.object({ number: z.number() }),
  execute: ({ number }) => ({ number, amount: number * 10, currency: "CHF" }),
});

const pay = tool({
  name: "pay",
  description: "Pays an invoice",
  parameters: z.object({ number: z.number(), amount: z.number() }),
  needsApproval: true,
  execute: (_, _context, details) => {
    const key = idempotencyOf(details)?.key ?? crypto.randomUUID();
    const payment = payments.get(key) ?? { receipt: payments.size + 1 };
    payments.set(key, payment);
    return payment;
  },
});

const bursar = new Agent({
  name: "Bursar",
  // With an OpenAI key, the model is OPENAI_DEFAULT_MODEL or the SDK's default.
  ...(process.env["OPENAI_API_KEY"] === undefined && { model: scriptedModel }),
  instructions: "You are a bursar. Look up the invoice, pay it, and tell the receipt.",
  tools: [invoice, pay],
});

export const agent: A2AAgent = fromOpenAIAgent(bursar, {
  name: "Bursar",
  description: "Pays invoices, once you approve.",
  version: "1.0.0",
  skills: [{ id: "pay", name: "Pay", description: "Pays an invoice", tags: ["payments"] }],
});
