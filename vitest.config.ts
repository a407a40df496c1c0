import { availableParallelism } from "node:os";
import { defineConfig } from "vitest/config";
import { LongFirst } from "./test/long-first.ts";
import { alone, long, slow } from "./test/projects.ts";
import { useFastFolder } from "./test/temporary.ts";

// Tests run the sources: the packages' exports carry a condition of ours for that, so no build comes first.
const conditions = ["@parley/source"];

/** Tests that need a browser, other runtimes, other languages or a keychain: commands of their own. */
const browser = ["test/browser/**/*.test.ts"];
const runtimes = ["test/runtimes/**/*.test.ts"];
const interop = ["test/interop/**/*.test.ts"];
/** The keychain of a desktop. */
const keychain = ["test/keychain/**/*.test.ts"];
/** Every program of the documentation, each run as a process. */
const docs = ["test/docs/**/*.test.ts"];
/** The examples as processes that are killed, and beside those with the official SDK; and all tests of the largest example. */
const examples = ["test/examples/**/*.test.ts", "examples/data-analyst/test/**/*.test.ts"];
/** The packages as they are published, installed and compiled as by their users. */
const release = ["test/release/**/*.test.ts", "test/types/**/*.test.ts"];
/** Processes with a small heap, and what may be done to them: a command of its own. */
const attack = ["test/attack/**/*.test.ts"];

/** What nodes share: a PostgreSQL server, and one of NATS. */
const postgres = [
  "packages/sql/test/postgres/**/*.test.ts",
  "packages/nats/test/**/*.test.ts",
  "test/cluster/**/*.test.ts",
  "benchmarks/test/postgres/**/*.test.ts",
  "examples/dbos/test/**/*.test.ts",
];

/** What a server does on each of its stores. The project `postgres` runs the same files on PostgreSQL. */
const onEachStore = [
  "test/behaviour/{behaviour,claims,conversations,operators,owner-data,push-operator,questions,request-headers,suspended-tasks,task-search}.test.ts",
  "test/isolation/**/*.test.ts",
  "packages/node/test/{blob-collector,blob-rows,blobs,large-messages}.test.ts",
];

useFastFolder();

export default defineConfig({
  resolve: { conditions },
  ssr: { resolve: { conditions } },
  test: {
    // Processes, not threads: threads would share a native SQLite, and unload it when they end.
    pool: "forks",
    // One more than there are cores, since tests also wait for processes and timeouts. The default is one less.
    maxWorkers: availableParallelism() + 1,
    sequence: { sequencer: LongFirst },
    // Far more than any test takes on a busy machine. Some tests start a dozen processes.
    testTimeout: 120_000,
    hookTimeout: 120_000,
    // A condition is waited for as long as a test may take, so that a busy machine fails no test.
    expect: { poll: { timeout: 60_000 } },
    setupFiles: ["test/patience.ts"],
    // Sources are compiled once for all commands, not once by each.
    experimental: { fsModuleCache: true },
    allowOnly: false,
    projects: [
      {
        extends: true,
        test: {
          name: "unit",
          include: [
            "{packages,examples}/*/test/**/*.test.ts",
            "{benchmarks,kits}/test/**/*.test.ts",
            "test/**/*.test.ts",
          ],
          exclude: [
            "**/node_modules/**",
            ...alone,
            ...long,
            ...browser,
            ...runtimes,
            ...interop,
            ...keychain,
            ...attack,
            ...docs,
            ...examples,
            ...release,
            ...postgres,
          ],
          globalSetup: "test/built.ts",
          // Files share processes: most of them take less time than to load the sources into a new process.
          isolate: false,
          setupFiles: ["test/shared-process.ts", "test/quiet-about-secrets.ts"],
        },
      },
      {
        extends: true,
        test: {
          name: "alone",
          include: [...alone],
          globalSetup: "test/built.ts",
          setupFiles: "test/quiet-about-secrets.ts",
        },
      },
      {
        extends: true,
        test: {
          name: "long",
          include: [...long],
          exclude: ["**/node_modules/**", ...(process.env["PARLEY_TESTS"] === "short" ? slow : [])],
          globalSetup: "test/built.ts",
          setupFiles: "test/quiet-about-secrets.ts",
          // 200 kills take some minutes on two quiet cores, and several times that on busy ones.
          testTimeout: 1_800_000,
        },
      },
      {
        extends: true,
        test: {
          name: "docs",
          include: docs,
          globalSetup: "test/built.ts",
          sequence: { groupOrder: 1 },
        },
      },
      {
        extends: true,
        test: {
          name: "examples",
          include: examples,
          globalSetup: "test/built.ts",
          sequence: { groupOrder: 6 },
          testTimeout: 600_000,
        },
      },
      {
        extends: true,
        test: {
          name: "release",
          include: release,
          globalSetup: ["test/built.ts", "test/release/setup.ts"],
          sequence: { groupOrder: 1 },
          // Packages are installed.
          testTimeout: 300_000,
          hookTimeout: 300_000,
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
          globalSetup: "test/runtimes/installed.ts",
          sequence: { groupOrder: 3 },
        },
      },
      {
        extends: true,
        test: {
          name: "interop",
          include: interop,
          globalSetup: ["test/built.ts", "test/release/setup.ts", "test/interop/environments.ts"],
          sequence: { groupOrder: 4 },
          // It runs beside other suites, on what they leave of the processor.
          testTimeout: 600_000,
          hookTimeout: 600_000,
        },
      },
      {
        extends: true,
        test: {
          name: "keychain",
          include: keychain,
          globalSetup: "test/built.ts",
        },
      },
      {
        extends: true,
        test: {
          name: "postgres",
          include: [...postgres, ...onEachStore],
          globalSetup: ["test/built.ts", "test/postgres/setup.ts"],
          isolate: false,
          setupFiles: ["test/shared-process.ts", "test/quiet-about-secrets.ts"],
          sequence: { groupOrder: 7 },
          // Processes are killed and started again, and programs are random.
          testTimeout: 600_000,
        },
      },
      {
        extends: true,
        test: {
          name: "attack",
          include: attack,
          globalSetup: "test/built.ts",
          // Gigabytes go through some of them.
          testTimeout: 300_000,
          sequence: { groupOrder: 5 },
        },
      },
    ],
  },
});
