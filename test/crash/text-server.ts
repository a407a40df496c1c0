import { readFileSync, writeFileSync, writeSync } from "node:fs";
import { defineAgent, systemClock } from "@parley/server";
import { serve } from "@parley/node";
import { sqliteStore } from "@parley/sql/sqlite";

// The server of client-text.test.ts: node text-server.ts FILE PORT. Its agent streams a model, which in the first life of the server stops in
// the middle, and in later ones answers as the message asks for: the same, something else, or less. Prints "ready" once it listens.

const [path = "", port] = process.argv.slice(2);

// Each life begins a minute later than the one before, so that the leases of a killed process are over.
const lives = `${path}.lives`;
const life = Number(readFileSync(lives, "utf8")) + 1;
writeFileSync(lives, String(life));
const clock = { ...systemClock, now: () => Date.now() + life * 60_000 };

const interrupted: readonly string[] = ["It is ", "certain "];
/** The first piece of the same text is another one than before: a repeated event would be left out. */
const answers: Readonly<Record<string, readonly string[]>> = {
  same: ["It is certain ", "and it ", "is so."],
  other: ["It is ", "doubtful ", "at best."],
  less: ["It is "],
};

async function* model(how: string, isFirst: boolean): AsyncGenerator<string> {
  for (const token of isFirst ? interrupted : (answers[how] ?? [])) yield token;
  if (isFirst) await new Promise(() => {});
}

const agent = defineAgent({
  name: "Talker",
  description: "Talks",
  version: "1.0.0",
  skills: [],
  resumable: true,
  async *onMessage(turn) {
    yield* turn.stream(model(turn.text, turn.attempt === 1), { artifactId: "answer" });
  },
});

await serve(agent, { port: Number(port), store: await sqliteStore({ path }), clock, pollInterval: 20 });
writeSync(1, "ready\n");
