import { writeSync } from "node:fs";
import { serve, silentLogger } from "@parley/node";
import { killedStore, say } from "./killed-store.ts";
import { planner } from "./plan.ts";

// The server that the test kills: node server.ts FILE PORT [before|after COUNT]. With the last two arguments it kills itself just before or
// after append number COUNT. Prints "ready" once it listens, and its errors on stderr.

const [path = "", port, moment, count] = process.argv.slice(2);

const store = await killedStore(path, moment, count);

await serve(
  [
    { agent: planner({ resumable: true, pauses: true }), path: "/resumable" },
    { agent: planner({ resumable: false, pauses: true }), path: "/plain" },
  ],
  {
    port: Number(port),
    store,
    logger: { ...silentLogger, error: say },
    // These tests lose a task more often than the default allows.
    lease: { maxAttempts: Infinity, maxDeaths: Infinity },
  },
);
writeSync(1, "ready\n");
