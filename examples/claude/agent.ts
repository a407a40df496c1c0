import { fromClaude } from "@parley/frameworks/claude";
import type { Agent } from "@parley/node";
import * as z from "zod";
import { loadSDK } from "./sdk.ts";

// import { createSdkMcpServer, query, tool } from "@anthropic-ai/claude-agent-sdk";
const { createSdkMcpServer, query, tool } = await loadSDK();

/** Stands in for a bank. A call repeated after a crash has a new id, so the key is the invoice number. */
const payments = new Map<number, { receipt: number }>();

const json = (value: object) => ({ content: [{ type: "text" as const, text: JSON.stringify(value) }] });

const invoice = tool("invoice", "Finds an invoice by its number", { number: z.number() }, async ({ number }) =>
  json({ number, amount: number * 10, currency: "CHF" }),
);

const pay = tool("pay", "Pays an invoice", { number: z.number(), amount: z.number() }, async ({ number }) => {
  const payment = payments.get(number) ?? { receipt: payments.size + 1 };
  payments.set(number, payment);
  return json(payment);
});

export const agent: Agent = fromClaude(query, {
  name: "Bursar",
  description: "Pays invoices, once you approve.",
  version: "1.0.0",
  skills: [{ id: "pay", name: "Pay", description: "Pays an invoice", tags: ["payments"] }],
  options: () => ({
    model: process.env["AI_MODEL"],
    systemPrompt: "You are a bursar. Look up the invoice, pay it, and tell the receipt.",
    mcpServers: { bank: createSdkMcpServer({ name: "bank", tools: [invoice, pay] }) },
    // All other tools ask the user.
    allowedTools: ["mcp__bank__invoice"],
  }),
});
