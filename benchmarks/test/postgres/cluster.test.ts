import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, inject, test } from "vitest";

/** The case `cluster` with small numbers, run as a command. It counts arrivals, because measurements on a busy machine mean nothing. */

const program = fileURLToPath(new URL("../../../scripts/run.mjs", import.meta.url));

test("the case cluster runs: every event arrives, every task of a killed node is taken over, and each row has its figures", async () => {
  const env = { ...process.env, DATABASE_URL: inject("postgres") };
  const { stdout } = await promisify(execFile)(
    process.execPath,
    [program, "benchmarks/dist/main.js", "cluster", "--quick", "--json"],
    { env },
  );
  const { measures, also } = JSON.parse(stdout) as {
    measures: Record<string, number>;
    also: Record<string, Record<string, number>>;
  };
  expect(measures["eventsDue"]).toBeGreaterThan(50);
  expect(measures["eventsHeard"]).toBe(measures["eventsDue"]);
  expect(measures["takenOver"]).toBe(3);
  expect(Object.keys(also)).toEqual([
    "parley, client of the same node",
    "parley, 50 events a second",
    "parley, tasks on 1 node",
    "parley, tasks on 2 nodes",
    "parley, tasks on 3 nodes",
    "parley, tasks on SQLite, 1 process",
    "parley, tasks on SQLite, 2 processes",
    "parley, takeover",
  ]);
  for (const [name, { throughput, p50, p99 }] of Object.entries(also)) {
    expect([p50, p99], name).toEqual([expect.any(Number), expect.any(Number)]);
    if (name !== "parley, takeover") expect(throughput, name).toBeGreaterThan(0);
  }
});
