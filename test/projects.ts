/**
 * Tests that `npm run test:long` runs a second time, at length and on the disk: those that take their counts from
 * test/counts.ts, and those of a database on a file.
 */
export const long: readonly string[] = [
  "test/fuzz/**/*.test.ts",
  "test/crash/**/*.test.ts",
  "packages/sql/test/**/*.test.ts",
  "packages/a2a/test/store/memory.test.ts",
  "packages/a2a/test/model/round-trip.test.ts",
  "packages/conform/test/mutants.test.ts",
];
