import { appendFileSync } from "node:fs";
import { setTimeout } from "node:timers/promises";
import { acceptedContent, inputRequired, McpServer } from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";
import * as z from "zod";

/* The tools of mcp.test.ts: node tools.mjs FILE serves them over stdio. Each call adds a line to FILE: job, number and key. */

const inputSchema = z.object({ job: z.string(), number: z.number() });
const answer = z.object({ answer: z.string() });

/** @param {string} file */
export const toolsOf = (file) => () => {
  const server = new McpServer({ name: "workshop", version: "1.0.0" });
  /** @param {{ job: string, number: number }} args @param {{ mcpReq: { _meta?: Record<string, unknown> } }} context */
  const act = async ({ job, number }, { mcpReq }) => {
    appendFileSync(file, `${job} ${number} ${String(mcpReq._meta?.["parley/idempotencyKey"])}\n`);
    await setTimeout(15);
  };
  server.registerTool("act", { description: "Acts", inputSchema }, async (args, context) => {
    await act(args, context);
    return { content: [{ type: "text", text: `did ${args.number}` }] };
  });
  server.registerTool("ask", { description: "Asks, and acts", inputSchema }, async (args, context) => {
    await act(args, context);
    const given = acceptedContent(context.mcpReq.inputResponses, "answer", answer);
    if (given !== undefined) return { content: [{ type: "text", text: `was told ${given.answer}` }] };
    const request = inputRequired.elicit({ message: "Really?", requestedSchema: answer });
    return inputRequired({ inputRequests: { answer: request }, requestState: args.job });
  });
  return server;
};

const [, script, file] = process.argv;
if (script === import.meta.filename && file !== undefined) {
  process.stdin.once("end", () => process.exit());
  serveStdio(toolsOf(file));
}
