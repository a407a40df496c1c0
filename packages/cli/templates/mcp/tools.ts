import { McpServer } from "@modelcontextprotocol/server";
import { serveStdio } from "@modelcontextprotocol/server/stdio";
import * as z from "zod";

const inputSchema = z.object({ count: z.number().int().min(1).max(100), sides: z.number().int().min(1).max(999) });

serveStdio(() => {
  const server = new McpServer({ name: "dice", version: "0.1.0" });
  server.registerTool("roll_dice", { description: "Rolls dice", inputSchema }, ({ count, sides }) => {
    const rolls = Array.from({ length: count }, () => 1 + Math.floor(Math.random() * sides));
    const total = rolls.reduce((sum, roll) => sum + roll, 0);
    return { content: [{ type: "text", text: `${rolls.join(" + ")} = ${total}` }] };
  });
  return server;
});
