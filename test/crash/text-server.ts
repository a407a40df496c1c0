import { readFileSync, writeFileSync, writeSync } from "node:fs";
import { defineAgent, systemClock } from "@parley/server";
import { serve } from "@parley/node";
import { sqliteStore } from "@parley/sql/sqlite";

// The server of client-text.test.ts: node text-server.ts FILE PORT. Its agent streams a model. In the first process the model stops in the
// middle; in later ones it answers as the message requests: with the same text, another one, or less. Prints "ready" once it listens.

const [path = "", port] = process.argv.slice(2);

// Each process runs one minute ahead of the previous one, so that the leases of a killed process have expired.
const lives = `${path}.lives`;
const life = Number(readFileSync(lives, "utf8")) + 1;
writeFileSync(lives, String(life));
const clock = { ...systemClock, now: () => Date.now() + life * 60_000 };

const interrupted: readonly string[] = ["It is ", "certain "];
/** The same text starts with a different piece than before, because a repeated event would be omitted. */
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
