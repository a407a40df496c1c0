/**
 * Tests that `npm run test:long` runs a second time, at length: those that take their counts from
 * test/counts.ts, and those that keep their files in a folder on the disk.
 */
export const long: readonly string[] = [
  "test/fuzz/**/*.test.ts",
  "test/crash/**/*.test.ts",
  "packages/sql/test/sqlite/contract.test.ts",
  "packages/sql/test/sqlite/crash.test.ts",
  "packages/sql/test/sqlite/huge.test.ts",
  "packages/sql/test/sqlite/thread.test.ts",
  "packages/a2a/test/store/memory.test.ts",
  "packages/a2a/test/model/round-trip.test.ts",
  "packages/conform/test/mutants.test.ts",
];
