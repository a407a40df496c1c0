import { appendFileSync, readFileSync, writeFileSync } from "node:fs";
import { systemClock } from "@parley/server";

/** A server of a kill test: node SERVER FILE PORT. It prints "ready" once it listens. */
export interface ServerLife {
  /** The file of its store. */
  readonly path: string;
  readonly port: number;
  readonly clock: typeof systemClock;
  /** Every process is killed from outside: no death suspends a task. */
  readonly lease: { readonly maxDeaths: number; readonly maxAttempts: number };
  /** Notes a call of a model or a tool as a line of FILE.calls: the job, and the number of the call in its script. */
  called(job: string, number: number): void;
}

/** Each life begins a minute later than the one before, so that the leases of a killed process are over. */
export function beginLife(): ServerLife {
  const [path = "", port] = process.argv.slice(2);
  const lives = `${path}.lives`;
  const life = Number(readFileSync(lives, "utf8")) + 1;
  writeFileSync(lives, String(life));
  return {
    path,
    port: Number(port),
    clock: { ...systemClock, now: () => Date.now() + life * 60_000 },
    lease: { maxDeaths: 1000, maxAttempts: 1000 },
    called: (job, number) => appendFileSync(`${path}.calls`, `${job} ${number}\n`),
  };
}
