import { defineConfig } from "vitest/config";

// Tests run the sources: the packages' exports carry a condition of ours for that, so no build comes first.
const conditions = ["@parley/source"];

/** Tests that take minutes and many processes: they run after the others, one file at a time. */
const long = ["test/fuzz/**/*.test.ts", "test/crash/**/*.test.ts"];
/** Tests that need a browser, other runtimes or other languages: commands of their own. */
const browser = ["test/browser/**/*.test.ts"];
const runtimes = ["test/runtimes/**/*.test.ts"];
const interop = ["test/interop/**/*.test.ts"];

export default defineConfig({
  resolve: { conditions },
  ssr: { resolve: { conditions } },
  test: {
    // Processes, not threads: a native SQLite must neither be shared nor torn down with a thread.
    pool: "forks",
    // Far beyond what any test takes, on the busiest machine: some start a dozen processes.
    testTimeout: 120_000,
    hookTimeout: 120_000,
    allowOnly: false,
    projects: [
      {
        extends: true,
        test: {
          name: "unit",
          include: [
            "{packages,examples}/*/test/**/*.test.ts",
            "{benchmarks,conformance}/test/**/*.test.ts",
            "test/**/*.test.ts",
          ],
          exclude: ["**/node_modules/**", ...long, ...browser, ...runtimes, ...interop],
        },
      },
      {
        extends: true,
        test: {
          name: "long",
          include: long,
          fileParallelism: false,
          testTimeout: 600_000,
          sequence: { groupOrder: 1 },
        },
      },
      {
        extends: true,
        test: {
          name: "browser",
          include: browser,
          sequence: { groupOrder: 2 },
        },
      },
      {
        extends: true,
        test: {
          name: "runtimes",
          include: runtimes,
          sequence: { groupOrder: 3 },
        },
      },
      {
        extends: true,
        test: {
          name: "interop",
          include: interop,
          globalSetup: "test/interop/environments.ts",
          sequence: { groupOrder: 4 },
        },
      },
    ],
  },
});
