/**
 * Tests that `npm run test:long` runs at full length: those that take their counts from test/counts.ts, those that keep
 * their files on the disk, and those that `npm test` leaves out because they take long.
 */
export const long: readonly string[] = [
  "test/fuzz/**/*.test.ts",
  "test/crash/**/*.test.ts",
  "test/isolation/**/*.test.ts",
  "test/e2e/analyst.test.ts",
  "packages/sql/test/sqlite/contract.test.ts",
  "packages/sql/test/sqlite/crash.test.ts",
  "packages/sql/test/sqlite/huge.test.ts",
  "packages/sql/test/sqlite/large.test.ts",
  "packages/sql/test/sqlite/operators.test.ts",
  "packages/sql/test/sqlite/thread.test.ts",
  "packages/server/test/operate/hostile.test.ts",
  "packages/server/test/store/memory.test.ts",
  "packages/server/test/store/search-memory.test.ts",
  "packages/a2a/test/cards/changes.test.ts",
  "packages/a2a/test/model/round-trip.test.ts",
  "packages/conform/test/hostile.test.ts",
  "packages/conform/test/mutants.test.ts",
  "packages/conform/test/official.test.ts",
  "packages/conform/test/own.test.ts",
  "packages/conform/test/special.test.ts",
];

/**
 * Tests that need a process of their own: they measure its memory, or change its working directory, its modules or its module loader.
 * All other files of `npm test` share processes with each other, see test/shared-process.ts.
 */
export const alone: readonly string[] = [
  "packages/a2a/test/client/sse.test.ts",
  "packages/cli/test/conform.test.ts",
  "packages/cli/test/db.test.ts",
  "packages/cli/test/logs.test.ts",
  "packages/cli/test/serve.test.ts",
  "packages/grpc/test/hostile.test.ts",
  "packages/node/test/bodies.test.ts",
  "packages/node/test/readers.test.ts",
  "packages/node/test/serve.test.ts",
];
