import { readFileSync, writeFileSync, writeSync } from "node:fs";
import { defineAgent, silentLogger, systemClock } from "@parley/server";
import { connect } from "@parley/a2a";
import { serve } from "@parley/node";
import { killedStore, say } from "./killed-store.ts";

// The delegating server, which the test kills: node delegation-server.ts FILE PORT [before|after COUNT]. With the last two arguments it
// kills itself just before or after append number COUNT. FILE.other has the URL of the other agent. Prints "ready" once it listens.

const [path = "", port, moment, count] = process.argv.slice(2);

// Each process runs one minute ahead of the previous one, so that the leases of a killed process have expired.
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
