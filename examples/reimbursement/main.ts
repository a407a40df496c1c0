import { withTimestamp } from "@parley/extensions/timestamp";
import { serve } from "@parley/node";
import agent from "./agent.ts";

const { url } = await serve(withTimestamp(agent), { port: Number(process.env["PORT"] ?? 4000) });
console.log(`Reimbursement at ${url}`);
