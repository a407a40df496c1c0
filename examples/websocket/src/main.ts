import assert from "node:assert/strict";
import { defineAgent, jsonRpcBinding, memoryStore, serve } from "@parley/node";
import { connect } from "@parley/a2a";
import { webSocketBinding as webSocketClient } from "./client.ts";
import { printedTable } from "./errors.ts";
import { bindingName } from "./frames.ts";
import { webSocketBinding } from "./server.ts";

/** An agent that is called over WebSocket: three calls at the same time, on one connection. */

const agent = defineAgent({
  name: "Counter",
  description: "Counts to a number.",
  version: "1.0.0",
  skills: [{ id: "count", name: "Count", description: "Counts to a number.", tags: ["numbers"] }],
  mayReplyDirectly: false,
  async *onMessage(turn) {
    for (let number = 1; number <= Number(turn.text); number++) yield turn.working(String(number));
  },
});

const server = await serve(agent, { port: 0, store: memoryStore(), bindings: [jsonRpcBinding(), webSocketBinding()] });
const client = await connect(server.url, { bindings: [webSocketClient()], binding: bindingName });

const counted = await Promise.all(
  ["1", "2", "3"].map(async (text) => {
    const words: string[] = [];
    for await (const { statusUpdate } of client.sendStreamingMessage(text)) {
      words.push(...(statusUpdate?.status.message?.parts ?? []).map((part) => part.text ?? ""));
    }
    return words.join(" ");
  }),
);

assert.deepEqual(counted, ["1", "1 2", "1 2 3"]);
console.log(`Counted over ${server.agents[0]?.card.supportedInterfaces.at(-1)?.url}: ${counted.join(", ")}`);
console.log(`Errors over ${bindingName}:\n\n${printedTable()}`);
await server.close();
