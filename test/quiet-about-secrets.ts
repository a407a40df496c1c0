import { silentLogger } from "@parley/server";
import { afterAll, beforeAll } from "vitest";
import { collect, secretsIn, taken } from "./secrets.ts";

/**
 * No log line of a test run has a secret. This runs around every test file: it collects what goes to the default logger, what
 * the loggers and commands of the tests' helpers get, and what is written to standard error, and fails the file whose lines have one.
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
