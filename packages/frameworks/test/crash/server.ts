import { appendFileSync, readFileSync, writeFileSync, writeSync } from "node:fs";
import { serve } from "@parley/node";
import { systemClock, type Agent } from "@parley/server";
import { sqliteStore } from "@parley/sql/sqlite";

/* What the servers of the kill tests share: node SERVER.ts FILE PORT. */

const [path = "", port] = process.argv.slice(2);

/** Adds a line to FILE.calls: the job, and the number of the call of a model or a tool in the script. */
export function called(job: string, number: number): void {
  appendFileSync(`${path}.calls`, `${job} ${number}\n`);
}

/** The job in a conversation, as anything that can be written as JSON. */
export function jobIn(asked: unknown): string {
  return /job-[\w-]+/.exec(JSON.stringify(asked))?.[0] ?? "";
}

export const card = { name: "Payer", description: "Pays", version: "1.0.0", skills: [] };

/** Every process is killed from outside: no death suspends a task. */
const lease = { maxDeaths: 1000, maxAttempts: 1000 };

// Each life begins a minute later than the one before, so that the leases of a killed process are over.
const lives = `${path}.lives`;
/** How many processes have begun, with this one. */
export const life = Number(readFileSync(lives, "utf8")) + 1;
writeFileSync(lives, String(life));
const clock = { ...systemClock, now: () => Date.now() + life * 60_000 };

/** Serves agents by their names, and prints "ready" once it listens. */
export async function serveAll(agents: Readonly<Record<string, Agent>>): Promise<void> {
  await serve(
    Object.entries(agents).map(([name, agent]) => ({ path: `/${name}`, agent })),
    { port: Number(port), store: await sqliteStore({ path }), clock, pollInterval: 20, logger: false, lease },
  );
  writeSync(1, "ready\n");
}
