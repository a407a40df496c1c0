import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { beforeAll, describe, expect, it } from "vitest";
import { budgets } from "./budgets.ts";

/** So large, in MiB, that nothing in it is collected meanwhile. */
const youngGeneration = (size: number): readonly string[] => [
  `--min-semi-space-size=${size}`,
  `--max-semi-space-size=${size}`,
];

/**
 * Each counts in a process of its own, of the packages as they are built. What it counts does not depend on the machine, or
 * on what else runs there.
 */
const programs: readonly (readonly string[])[] = [
  ["statements.mjs"],
  ["parses.mjs"],
  ["writes.mjs"],
  // Interpreted, in one thread: nothing is optimized away.
  ["--expose-gc", "--no-opt", "--single-threaded", ...youngGeneration(256), "bytes.mjs"],
  ["files.mjs", "client"],
  ["files.mjs", "gRPC client"],
  ["files.mjs", "handler"],
  ["files.mjs", "serve"],
];

describe("the budget of", () => {
  const counts: Record<string, number> = {};
  beforeAll(async () => {
    for (const program of programs) {
      const { stdout } = await promisify(execFile)(process.execPath, [...program], { cwd: import.meta.dirname });
      Object.assign(counts, JSON.parse(stdout));
    }
  });

  it.each(Object.entries(budgets))("%s is kept", (name, { was, atMost }) => {
    const count = counts[name] ?? expect.fail("it was not counted");
    const grown = `${name}: ${count}, allowed are ${atMost}, it was ${was} when that was set (test/budgets/budgets.ts)`;
    expect(count, grown).toBeLessThanOrEqual(atMost);
  });

  it("everything that is counted has a limit", () => {
    expect(Object.keys(counts).filter((name) => budgets[name] === undefined)).toEqual([]);
  });
});
