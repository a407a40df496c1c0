import { existsSync, writeSync } from "node:fs";
import { defineAgent, serve, silentLogger } from "@parley/node";
import { killedStore, say } from "./killed-store.ts";

// The server whose agent is inside one long step when the test kills it: node suspects-server.ts FILE PORT. The step ends once FILE.done exists. A
// message "crash" kills the server. Prints "ready" once it listens, and "in step ATTEMPT".

const [path = "", port] = process.argv.slice(2);

await serve(
  defineAgent({
    name: "Slow",
    description: "A test",
    version: "1.0.0",
    skills: [],
    resumable: true,
    async *onMessage(turn) {
      if (turn.text === "crash") process.kill(process.pid, "SIGKILL");
      yield turn.working("Working");
      await turn.step("long", async () => {
        writeSync(1, `in step ${turn.attempt}\n`);
        while (!existsSync(`${path}.done`)) await new Promise((resolve) => setTimeout(resolve, 20));
      });
      yield turn.completed("Done");
    },
  }),
  { port: Number(port), store: await killedStore(path), logger: { ...silentLogger, error: say }, grace: 60_000 },
);
writeSync(1, "ready\n");
