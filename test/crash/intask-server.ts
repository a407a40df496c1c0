import { readFileSync, writeFileSync, writeSync } from "node:fs";
import { defineAgent, silentLogger, systemClock, text } from "@parley/server";
import { serve } from "@parley/node";
import { killedStore, say } from "./killed-store.ts";

// The server whose turns wait for authorizations, and which the test kills: node intask-server.ts FILE PORT [before|after COUNT]. With the last
// two arguments it kills itself just before or after append number COUNT. Prints "ready" once it listens.

const [path = "", port, moment, count] = process.argv.slice(2);

// Each process runs one minute ahead of the previous one, so that the leases of a killed process have expired.
const lives = `${path}.lives`;
const life = Number(readFileSync(lives, "utf8")) + 1;
writeFileSync(lives, String(life));
const clock = { ...systemClock, now: () => Date.now() + life * 60_000 };

const agent = defineAgent({
  name: "Shop",
  description: "Buys",
  version: "1.0.0",
  skills: [],
  async *onMessage(turn) {
    yield turn.working("Looking");
    const hour = 3_600_000;
    const given = yield* turn.authorize({ form: "secret", reason: "The key of your shop", lifetime: 10 * hour });
    yield turn.artifact({ parts: [text(String(given.length))] });
  },
});

await serve(agent, {
  port: Number(port),
  store: await killedStore(path, moment, count),
  clock,
  logger: { ...silentLogger, error: say },
  pollInterval: 20,
  authorization: { keys: [Buffer.alloc(32, 7).toString("base64")] },
});
writeSync(1, "ready\n");
