import { readFileSync, writeFileSync, writeSync } from "node:fs";
import { defineAgent, silentLogger, systemClock, text } from "@parley/server";
import { nodeDialer, serve } from "@parley/node";
import { killedStore, say } from "./killed-store.ts";

// The server with webhooks, which the test kills: node webhook-server.ts FILE PORT [before|after COUNT]. With the last two arguments it kills
// itself just before or after append number COUNT. Prints "ready" once it listens, and its errors on stderr.

const [path = "", port, moment, count] = process.argv.slice(2);

// Each process runs one minute ahead of the previous one, so that the claims of a killed process have expired.
const lives = `${path}.lives`;
const life = Number(readFileSync(lives, "utf8")) + 1;
writeFileSync(lives, String(life));
const clock = { ...systemClock, now: () => Date.now() + life * 60_000 };

const store = await killedStore(path, moment, count);

const agent = defineAgent({
  name: "Reporter",
  description: "Reports in five events",
  version: "1.0.0",
  skills: [],
  async *onMessage(turn) {
    yield turn.working();
    for (const artifactId of ["a", "b", "c"]) yield turn.artifact({ artifactId, parts: [text(artifactId)] });
  },
});

await serve(agent, {
  port: Number(port),
  store,
  clock,
  logger: { ...silentLogger, error: say },
  pollInterval: 20,
  push: {
    keys: [Buffer.alloc(32, 7).toString("base64")],
    net: { allowPrivate: true },
    dialer: nodeDialer({ tls: { ca: readFileSync(`${path}.ca`) } }),
    timeout: 5_000,
    retryAfter: Array.from({ length: 100_000 }, () => 20),
  },
});
writeSync(1, "ready\n");
