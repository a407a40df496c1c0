// Prints how many files are loaded until something is there: node files.mjs client|"gRPC client"|handler|serve

import { Session } from "node:inspector";
import { agent } from "./fixed-agent.mjs";

const session = new Session();
session.connect();
/** @type {Set<string>} */
const files = new Set();
session.on("Debugger.scriptParsed", ({ params: { url } }) => {
  if (url.startsWith("file:") && !url.includes("/test/budgets/")) files.add(url);
});
session.post("Debugger.enable");

const [what = ""] = process.argv.slice(2);
/** @type {Readonly<Record<string, () => Promise<unknown>>>} */
const starts = {
  client: () => import("@parley/a2a"),
  "gRPC client": () => Promise.all([import("@parley/a2a"), import("@parley/grpc/client")]),
  async handler() {
    const { createHandler, defineAgent, memoryStore } = await import("@parley/server");
    await createHandler(defineAgent(agent), { publicUrl: "http://localhost", store: memoryStore() }).close();
  },
  async serve() {
    const { defineAgent, memoryStore, serve } = await import("@parley/node");
    await (await serve(defineAgent(agent), { port: 0, store: memoryStore() })).close();
  },
};
await starts[what]?.();
process.stdout.write(JSON.stringify({ [`files of ${what}`]: files.size }));
