// A server in its own process that sends webhooks, and that tests kill. Its argument is its options as JSON. It prints its URL when it is ready.

import { defineAgent, memoryStore, serve } from "@parley/node";

const agent = defineAgent({
  name: "Asking",
  description: "Asks back, and ends with the second message.",
  version: "1.0.0",
  skills: [],
  async *onMessage(turn) {
    if (turn.task === undefined) yield turn.inputRequired("Which city?");
    else yield turn.completed("Thank you");
  },
});

const { inMemory = false, ...options } = JSON.parse(process.argv[2] ?? "{}");
const store = inMemory ? { store: memoryStore() } : {};
try {
  const server = await serve(agent, { port: 0, push: true, ...store, ...options });
  process.stdout.write(`${server.url}\n`);
} catch (error) {
  process.stderr.write(`${String(error)}\n`);
  process.exitCode = 1;
}
