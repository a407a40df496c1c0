import { vi } from "vitest";

// vi.waitFor() gives up after a second, and no option changes that for all tests. Here it waits as long as expect.poll() does
// (vitest.config.ts), so that a busy machine fails no test.
const { waitFor } = vi;
const patience = 60_000;

vi.waitFor = (condition, options) => {
  const given = typeof options === "number" ? { timeout: options } : options;
  return waitFor(condition, { timeout: patience, ...given });
};
