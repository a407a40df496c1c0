import { tool } from "@langchain/core/tools";
import { interrupt } from "@langchain/langgraph";
import { createReactAgent } from "@langchain/langgraph/prebuilt";
import { durable, fromLangGraph, idempotencyOf } from "@parley/frameworks/langgraph";
import type { Agent } from "@parley/node";
import * as z from "zod";
import { chatModel } from "./model.ts";

/** Stands in for a bank: payments by idempotency key. */
const payments = new Map<string, { receipt: number }>();

const invoice = tool(({ number }) => ({ number, amount: number * 10, currency: "CHF" }), {
  name: "invoice",
  description: "Finds an invoice by its number",
  schema: z.object({ number: z.number() }),
});

const pay = tool(
  ({ number, amount }, config) => {
    const isApproved: unknown = interrupt(`Pay CHF ${amount} for invoice ${number}?`, { responseSchema: z.boolean() });
    if (isApproved !== true) return "The user has refused.";
    const key = idempotencyOf(config)?.key ?? "test";
    const payment = payments.get(key) ?? { receipt: payments.size + 1 };
    payments.set(key, payment);
    return payment;
  },
  {
    name: "pay",
    description: "Pays an invoice",
    schema: z.object({ number: z.number(), amount: z.number() }),
  },
);

const bursar = createReactAgent({
  llm: durable.model(await chatModel()),
  tools: durable.tools([invoice, pay]),
  prompt: "You are a bursar. Look up the invoice, pay it, and tell the receipt.",
});

export const agent: Agent = fromLangGraph(bursar, {
  name: "Bursar",
  description: "Pays invoices, once you approve.",
  version: "1.0.0",
  skills: [{ id: "pay", name: "Pay", description: "Pays an invoice", tags: ["payments"] }],
});
