import { memoryStore, serve } from "@parley/node";
import { sqliteStore } from "@parley/sql/sqlite";
import { benchmarkAgent } from "./agent.ts";
import { Bell } from "./commands.ts";
import { control } from "./control.ts";
import { tenExtensions } from "./extensions.ts";
import { fill } from "./fill.ts";

// Parley with its defaults, except for the store, and for ten extensions that callers may activate:
// node parley.js memory|FILE [extensions]

const [place = "memory", more] = process.argv.slice(2);
const store = place === "memory" ? memoryStore() : await sqliteStore({ path: place });
const extensions = more === "extensions" ? tenExtensions : [];
const { url, port } = await serve(benchmarkAgent(new Bell()), { port: 0, grpc: true, store, extensions });
control(
  { jsonRpc: url, rest: url },
  { grpc: () => `127.0.0.1:${port}`, fill: (input: Parameters<typeof fill>[1]) => fill(store, input) },
);
