import { mkdir } from "node:fs/promises";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { serve } from "@parley/node";
import { sqliteStore } from "@parley/sql/sqlite";
import agent from "./agent.ts";

// Serves the data analyst on PORT (default 4000). Its tasks are in .parley/ below the working directory, in a separate file, so that
// another agent in the same folder does not find them.

/** A path in this repository, relative to the working directory of the user. */
function local(path: string): string {
  return relative(process.cwd(), fileURLToPath(new URL(`../../../${path}`, import.meta.url)));
}

function portOf(text: string): number {
  const port = Number(text);
  if (/^\d{1,5}$/.test(text) && port <= 65_535) return port;
  process.stderr.write(`PORT must be a number from 0 to 65535, and is “${text}”\n`);
  process.exit(2);
}

const port = portOf(process.env["PORT"] || "4000");
try {
  await mkdir(".parley", { recursive: true, mode: 0o700 });
  const { url } = await serve(agent, {
    port,
    store: await sqliteStore({ path: join(".parley", "data-analyst.db") }),
    // Their key is in .parley/ too, so that a task that continues after a restart still reports.
    push: true,
  });
  const weather = local("node_modules/vega-datasets/data/weather.csv");
  const parley = `node ${local("packages/cli/dist/main.js")}`;
  process.stdout.write(`Data analyst at ${url}

Try next, in another terminal:

  ${parley} send ${url} "chart average temp_max by month" --file ${weather} --out charts
  ${parley} listen ${url} --message "chart wind by month" --file ${weather}
  ${parley} card ${url}
  curl -s ${url}/message:send -H 'Content-Type: application/json' -d '{"message":{"messageId":"hello","role":"ROLE_USER","parts":[{"text":"help"}]}}'
`);
} catch (error) {
  const why = error instanceof Error ? error.message : String(error);
  process.stderr.write(`The server could not start. ${why}\nIts port is the environment's PORT: PORT=4001 npm start\n`);
  process.exit(1);
}
