import { appendFileSync, readFileSync, writeFileSync } from "node:fs";
import { systemClock } from "@parley/server";

/* One life of the server that is killed: node SERVER FILE PORT. */

export const [path = "", port] = process.argv.slice(2);

/** Adds a line to FILE.calls: the job, and the number of the call of a model or a tool in the script. */
export function called(job: string, number: number): void {
  appendFileSync(`${path}.calls`, `${job} ${number}\n`);
}

/** The job in a conversation, as anything that can be written as JSON. */
export function jobIn(asked: unknown): string {
  return /job-[\w-]+/.exec(JSON.stringify(asked))?.[0] ?? "";
}

export const card = { name: "Payer", description: "Pays", version: "1.0.0", skills: [] };

const lives = `${path}.lives`;
/** How many processes have begun, with this one. */
export const life = Number(readFileSync(lives, "utf8")) + 1;
writeFileSync(lives, String(life));

/** Each life begins a minute later than the one before, so that the leases of a killed process are over. */
export const clock = { ...systemClock, now: () => Date.now() + life * 60_000 };
