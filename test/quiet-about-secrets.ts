import { silentLogger } from "@parley/server";
import { afterAll, beforeAll } from "vitest";
import { collect, secretsIn, taken } from "./secrets.ts";

/**
 * Checks that no log line of a test run has a secret. It runs around every test file and collects the output of the default logger, of the
 * loggers and commands of the test helpers, and of standard error. A file whose lines have a secret fails.
 */

const levels = ["debug", "info", "warn", "error"] as const;
const before = { ...silentLogger };
const { write } = process.stderr;

beforeAll(() => {
  taken();
  for (const level of levels) Object.assign(silentLogger, { [level]: collect });
  process.stderr.write = ((...given: Parameters<typeof write>) => {
    collect(String(given[0]));
    return write.apply(process.stderr, given);
  }) as typeof write;
});

afterAll(() => {
  Object.assign(silentLogger, before);
  process.stderr.write = write;
  const leaks = taken().filter((line) => secretsIn(line).length > 0);
  if (leaks.length > 0) throw new Error(`Log lines of this file have secrets:\n${leaks.slice(0, 5).join("\n")}`);
});
