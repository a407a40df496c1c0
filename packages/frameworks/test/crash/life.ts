import { appendFileSync, readFileSync, writeFileSync } from "node:fs";
import { systemClock } from "@parley/server";

/* One process of the server that the test kills: node SERVER FILE PORT. */

export const [path = "", port] = process.argv.slice(2);

/** Adds a line to FILE.calls: the job, and the script number of a model or tool call. */
export function called(job: string, number: number): void {
  appendFileSync(`${path}.calls`, `${job} ${number}\n`);
}

/** Finds the job in a conversation, given as any JSON-serializable value. */
export function jobIn(asked: unknown): string {
  return /job-[\w-]+/.exec(JSON.stringify(asked))?.[0] ?? "";
}

export const card = { name: "Payer", description: "Pays", version: "1.0.0", skills: [] };

const lives = `${path}.lives`;
/** The number of processes so far, including this one. */
export const life = Number(readFileSync(lives, "utf8")) + 1;
writeFileSync(lives, String(life));

/** Each process runs one minute ahead of the previous one, so that the leases of a killed process have expired. */
export const clock = { ...systemClock, now: () => Date.now() + life * 60_000 };
