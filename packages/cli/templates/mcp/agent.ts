import { mcpPool, McpToolError, mcpTools } from "@parley/mcp/tools";
import { defineAgent, type Agent } from "@parley/node";
import * as z from "zod";
import { realModel, scriptedModel, type Model, type ModelMessage } from "./model.ts";

/** MCP servers, as processes or by URL. */
export const pool = mcpPool({
  servers: { dice: { command: process.execPath, args: ["--import", "tsx", "tools.ts"], cwd: import.meta.dirname } },
});

const Arguments = z.record(z.string(), z.json());

/** How many answers of the model a turn may have. */
const maxRounds = 10;

export function createAgent(model: Model): Agent {
  return defineAgent({
    name: "{{NAME}}",
    description: "Rolls dice.",
    version: "0.1.0",
    skills: [
      {
        id: "roll",
        name: "Roll dice",
        description: "Rolls dice such as 2d6 or d20.",
        tags: ["dice"],
        examples: ["2d6"],
      },
    ],
    // After a crash the turn is called again. Steps and calls that are stored are not repeated.
    resumable: true,
    async *onMessage(turn) {
      const mcp = await mcpTools(turn, pool.server("dice"));
      const messages: ModelMessage[] = [];
      for (const { role, text } of await turn.context.history())
        messages.push(role === "user" ? { role, content: text } : { role: "assistant", content: text });
      for (let round = 1; round <= maxRounds; round += 1) {
        const answer = await turn.step(`model ${round}`, ({ signal }) => model(messages, mcp.tools, signal));
        if (answer.tool_calls === undefined) {
          yield turn.artifact({ name: "answer", parts: [{ text: answer.content ?? "" }] });
          return;
        }
        messages.push(answer);
        for (const { id, function: tool } of answer.tool_calls) {
          let content: string;
          try {
            ({ text: content } = yield* mcp.call(id, tool.name, Arguments.parse(JSON.parse(tool.arguments))));
          } catch (error) {
            // The model reads what was wrong with its call. Other errors, and questions of tools, are not for the model.
            const isWrongCall = [McpToolError, SyntaxError, z.ZodError].some((kind) => error instanceof kind);
            if (!isWrongCall) throw error;
            content = String(error);
          }
          messages.push({ role: "tool", tool_call_id: id, content });
        }
      }
      yield turn.failed(`The model has not finished after ${maxRounds} answers.`);
    },
  });
}

const name = process.env["AI_MODEL"];
export default createAgent(name === undefined ? scriptedModel : realModel(name));
