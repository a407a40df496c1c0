import { fromMastra } from "@parley/frameworks/mastra";
import type { Agent } from "@parley/node";
import { bursar } from "./bursar.ts";

export const agent: Agent = fromMastra(bursar, {
  name: "Bursar",
  description: "Pays invoices, once you approve.",
  version: "1.0.0",
  skills: [{ id: "pay", name: "Pay", description: "Pays an invoice", tags: ["payments"] }],
});
