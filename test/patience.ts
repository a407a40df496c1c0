import { vi } from "vitest";

// vi.waitFor() times out after a second, and no option changes this for all tests. Here it waits as long as expect.poll()
// (vitest.config.ts), so that tests do not fail on a busy machine.
const { waitFor } = vi;
const patience = 60_000;

vi.waitFor = (condition, options) => {
  const given = typeof options === "number" ? { timeout: options } : options;
  return waitFor(condition, { timeout: patience, ...given });
};
