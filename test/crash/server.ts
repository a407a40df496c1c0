import { writeSync } from "node:fs";
import { silentLogger, type LogFields } from "@parley/a2a";
import { serve } from "@parley/node";
import { sqliteStore } from "@parley/sql/sqlite";
import { planner } from "./plan.ts";

// The server that is killed: node server.ts FILE PORT [before|after COUNT]. With the last two it kills itself just before or
// just after that append to its store. Prints "ready" once it listens, and its errors on stderr.

const [path = "", port, moment, count] = process.argv.slice(2);

const store = await sqliteStore({ path });
const append = store.append.bind(store);
let appends = 0;
store.append = async (items) => {
  const last = ++appends === Number(count);
  if (last && moment === "before") process.kill(process.pid, "SIGKILL");
  const outcomes = await append(items);
  if (last) process.kill(process.pid, "SIGKILL");
  return outcomes;
};

function say(message: string, fields?: LogFields): void {
  const detail = JSON.stringify(fields, (_name, value: unknown) => (value instanceof Error ? value.stack : value));
  writeSync(2, `${message} ${detail}\n`);
}

await serve(
  [
    { agent: planner({ resumable: true, pauses: true }), path: "/resumable" },
    { agent: planner({ resumable: false, pauses: true }), path: "/plain" },
  ],
  {
    port: Number(port),
    store,
    logger: { ...silentLogger, error: say },
    // The tasks of this test are lost more often than the default allows.
    lease: { maxAttempts: Infinity, maxDeaths: Infinity },
  },
);
writeSync(1, "ready\n");
