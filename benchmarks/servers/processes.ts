import cluster from "node:cluster";
import { serve } from "@parley/node";
import { sqliteStore } from "@parley/sql/sqlite";
import { benchmarkAgent } from "./agent.ts";
import { Bell } from "./commands.ts";
import { control } from "./control.ts";

// Parley with its defaults in several processes on one SQLite database: node processes.js FILE COUNT.

const [path = "", count] = process.argv.slice(2);
const { url } = await serve(benchmarkAgent(new Bell()), {
  port: 0,
  processes: Number(count),
  store: () => sqliteStore({ path }),
});
// The primary notifies the others.
if (cluster.isPrimary) control({ jsonRpc: url, rest: url });
