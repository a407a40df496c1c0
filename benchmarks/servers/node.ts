import { serve, silentLogger } from "@parley/node";
import { postgresStore } from "@parley/sql/postgres";
import { benchmarkAgent, resumableAgent } from "./agent.ts";
import { Bell } from "./commands.ts";
import { control } from "./control.ts";

// A node of a cluster, Parley with its defaults: node node.js URL SCHEMA [alone]. `alone`: it ignores other processes, as if each ran on its
// own machine.

const [database = "", schema = "", where] = process.argv.slice(2);
const bell = new Bell();
const { url } = await serve(
  [
    { path: "/", agent: benchmarkAgent(bell) },
    { path: "/resumable", agent: resumableAgent() },
  ],
  {
    port: 0,
    // Silent, because the server logs each resumed task.
    logger: silentLogger,
    store: await postgresStore({ database, schema }),
    ...(where === "alone" && { lease: { isGone: () => false } }),
  },
);
const base = url.replace(/\/$/, "");
control({ jsonRpc: base, rest: base }, { ring: () => bell.ring() });
