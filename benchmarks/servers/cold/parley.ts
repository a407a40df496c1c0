import { defineAgent, memoryStore, serve } from "@parley/node";

// The smallest agent: node parley.js [FILE].

const [file] = process.argv.slice(2);
const agent = defineAgent({
  name: "Hello",
  description: "Says hello.",
  version: "1.0.0",
  skills: [],
  onMessage: (turn) => turn.reply("hello"),
});
// Loaded only if it is used, as in `serve`.
const store =
  file === undefined ? memoryStore() : await (await import("@parley/sql/sqlite")).sqliteStore({ path: file });
const { url } = await serve(agent, { port: 0, store });
process.send?.(url);
