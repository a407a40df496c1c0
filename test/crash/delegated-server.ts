import { readFileSync, writeFileSync, writeSync } from "node:fs";
import { defineAgent, silentLogger, systemClock, text } from "@parley/server";
import { serve } from "@parley/node";
import { killedStore, say } from "./killed-store.ts";

// The delegated agent, which the test kills: node delegated-server.ts FILE PORT [before|after COUNT]. With the last two arguments it kills itself
// just before or after append number COUNT. Prints "ready" once it listens.

const [path = "", port, moment, count] = process.argv.slice(2);

// Each process runs one minute ahead of the previous one, so that the leases of a killed process have expired.
const lives = `${path}.lives`;
const life = Number(readFileSync(lives, "utf8")) + 1;
writeFileSync(lives, String(life));
const clock = { ...systemClock, now: () => Date.now() + life * 60_000 };

const agent = defineAgent({
  name: "Writer",
  description: "Writes",
  version: "1.0.0",
  skills: [],
  resumable: true,
  async *onMessage(turn) {
    yield turn.artifact({ artifactId: "words", parts: [text(turn.text)], open: true });
    for (const word of ["a", "b", "c", "d"]) {
      yield turn.append("words", [text(` ${word}`)], { last: word === "d" });
      await turn.flush();
    }
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
