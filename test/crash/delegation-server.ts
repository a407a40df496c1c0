import { readFileSync, writeFileSync, writeSync } from "node:fs";
import { defineAgent, silentLogger, systemClock } from "@parley/server";
import { connect } from "@parley/a2a";
import { serve } from "@parley/node";
import { killedStore, say } from "./killed-store.ts";

// The server that delegates while it is killed: node delegation-server.ts FILE PORT [before|after COUNT]. With the last two it kills
// itself just before or just after that append to its store. The address of the other agent is in FILE.other. Prints "ready" once it listens.

const [path = "", port, moment, count] = process.argv.slice(2);

// Each life begins a minute later than the one before, so that the leases of a killed process are over.
const lives = `${path}.lives`;
const life = Number(readFileSync(lives, "utf8")) + 1;
writeFileSync(lives, String(life));
const clock = { ...systemClock, now: () => Date.now() + life * 60_000 };

const other = readFileSync(`${path}.other`, "utf8");

const agent = defineAgent({
  name: "Editor",
  description: "Lets others write",
  version: "1.0.0",
  skills: [],
  async *onMessage(turn) {
    yield turn.working("Asking", { keep: true });
    const client = await connect(other);
    const both = yield* turn.all([
      turn.delegate(client, `${turn.text} one`),
      turn.delegate(client, `${turn.text} two`),
    ]);
    yield turn.completed(both.map((each) => each.text).join(" and "));
  },
});

await serve(agent, {
  port: Number(port),
  store: await killedStore(path, moment, count),
  clock,
  logger: { ...silentLogger, error: say },
  pollInterval: 20,
});
writeSync(1, "ready\n");
