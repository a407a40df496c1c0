import { data, defineAgent, text, type Agent } from "@parley/node";
import type { Client as Tools } from "@modelcontextprotocol/client";
import { Order, Stock } from "./job.ts";

/** Makes the parts supplier, an agent of another company. Its warehouse is a tool, over MCP. */
export function partsSupplier(warehouse: () => Promise<Tools>): Agent {
  return defineAgent({
    name: "Parts supplier",
    description: "Sells car parts.",
    version: "1.0.0",
    skills: [{ id: "sell", name: "Sell parts", description: "Checks the stock, and takes orders", tags: ["car"] }],
    defaultInputModes: ["text/plain", "application/json"],
    defaultOutputModes: ["text/plain", "application/json"],
    resumable: true,
    async *onMessage(turn) {
      const tools = await warehouse();
      if (turn.message.parts.every((part) => part.data === undefined)) {
        const part = /#\d+/.exec(turn.text)?.[0] ?? "";
        const { structuredContent } = await tools.callTool({ name: "get_stock", arguments: { part } });
        const stock = Stock.parse(structuredContent);
        const isChinese = /\p{Script=Han}/u.test(turn.text);
        const says = isChinese
          ? `零件 ${part} 有 ${stock.available} 件,每件 ${stock.price} 美元。`
          : `There are ${stock.available} of ${part}, for ${stock.price} dollars.`;
        yield turn.reply([text(says), data(stock)]);
        return;
      }
      const { order: part } = await turn.data(Order);
      // The order number is the task id, so a call repeated after a crash does not take a second part.
      const { isError } = await tools.callTool({ name: "take_part", arguments: { part, order: turn.taskId } });
      if (isError === true) yield turn.failed(`Part ${part} is sold out.`);
      else yield turn.artifact({ artifactId: "order", name: "order", parts: [data({ part, order: turn.taskId })] });
    },
  });
}
