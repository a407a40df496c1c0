import { writeSync } from "node:fs";
import { defineAgent, serve, text } from "@parley/node";
import { sqliteStore } from "@parley/sql/sqlite";

// The server of client-restart.test.ts: node restarted-server.ts FILE PORT, over all bindings. Prints "ready" once it listens.

const [path = "", port] = process.argv.slice(2);

const agent = defineAgent({
  name: "Clerk",
  description: "Answers",
  version: "1.0.0",
  skills: [],
  async *onMessage(turn) {
    if (turn.text === "ask") return yield turn.inputRequired("What?");
    yield turn.artifact({ artifactId: "answer", parts: [text(`answer to ${turn.text}`)] });
  },
});

await serve(agent, { port: Number(port), grpc: true, store: await sqliteStore({ path }) });
writeSync(1, "ready\n");
