import { existsSync, writeSync } from "node:fs";
import cluster from "node:cluster";
import { defineAgent, serve, silentLogger } from "@parley/node";
import { sqliteStore } from "@parley/sql/sqlite";

// Two serving processes, whose agent is inside one long step while they die: node members-server.ts FILE. The step ends once FILE.done exists.
// A message "crash" kills its process in each attempt. Prints the URL, "in step ATTEMPT PROCESS", and errors.

const [path = ""] = process.argv.slice(2);
const print = (line: string): void => void writeSync(1, `${line}\n`);

const server = await serve(
  defineAgent({
    name: "Slow",
    description: "A test",
    version: "1.0.0",
    skills: [],
    resumable: true,
    mayReplyDirectly: false,
    async *onMessage(turn) {
      await turn.step("long", async () => {
        print(`in step ${turn.attempt} ${process.pid}`);
        if (turn.text === "crash") process.exit(1);
        while (!existsSync(`${path}.done`)) await new Promise((resolve) => setTimeout(resolve, 20));
      });
      yield turn.completed("Done");
    },
  }),
  {
    port: 0,
    processes: 2,
    store: () => sqliteStore({ path }),
    logger: { ...silentLogger, error: (message, fields) => print(`${message} ${JSON.stringify(fields)}`) },
  },
);
if (cluster.isPrimary) print(`url ${server.url}`);
