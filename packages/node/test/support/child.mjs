// A server in its own process, which tests end by signals. The process prints its URL when it is ready.

import { defineAgent, memoryStore, serve } from "@parley/node";

const agent = defineAgent({
  name: "Slow",
  description: "Says tick until it is told to stop.",
  version: "1.0.0",
  skills: [],
  async *onMessage(turn) {
    const finish = turn.text === "finish";
    yield turn.working("tick");
    await new Promise((resolve) => {
      turn.signal.addEventListener("abort", resolve);
      if (finish) process.once("SIGTERM", resolve);
    });
    yield turn.artifact({ parts: [{ text: "tock" }] });
  },
});

const server = await serve(agent, { port: 0, store: memoryStore(), grace: Number(process.argv[2]) });
process.stdout.write(`${server.url}\n`);
