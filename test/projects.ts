/**
 * Tests that `npm run test:long` runs at full length: those that take their counts from test/counts.ts, those that keep
 * their files on the disk, and those that `npm test` leaves out because they take long.
 */
export const long: readonly string[] = [
  "test/fuzz/**/*.test.ts",
  "test/crash/**/*.test.ts",
  "packages/frameworks/test/crash/**/*.test.ts",
  "packages/mcp/test/crash/**/*.test.ts",
  "test/isolation/**/*.test.ts",
  "test/e2e/analyst.test.ts",
  "packages/mcp/test/conformance-client.test.ts",
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
  "packages/cli/test/dev.test.ts",
  "packages/cli/test/login-oauth.test.ts",
  "packages/conform/test/conform.test.ts",
  "packages/conform/test/healthy.test.ts",
  "packages/conform/test/hostile.test.ts",
  "packages/conform/test/mutants.test.ts",
  "packages/conform/test/official.test.ts",
  "packages/conform/test/own.test.ts",
  "packages/conform/test/special.test.ts",
  "packages/testing/test/broken-extensions.test.ts",
  "packages/testing/test/store-contract.test.ts",
];

/** Files of `long` that take half of the time of all tests: `npm test` runs them only if they are named. */
export const slow: readonly string[] = [
  "packages/a2a/test/cards/changes.test.ts",
  "packages/a2a/test/model/round-trip.test.ts",
  "packages/cli/test/dev.test.ts",
  "packages/cli/test/login-oauth.test.ts",
  "packages/conform/test/conform.test.ts",
  "packages/conform/test/healthy.test.ts",
  "packages/conform/test/hostile.test.ts",
  "packages/conform/test/mutants.test.ts",
  "packages/conform/test/official.test.ts",
  "packages/conform/test/own.test.ts",
  "packages/conform/test/special.test.ts",
  "packages/frameworks/test/crash/kills.test.ts",
  "packages/mcp/test/conformance-client.test.ts",
  "packages/server/test/operate/hostile.test.ts",
  "packages/sql/test/sqlite/huge.test.ts",
  "packages/testing/test/broken-extensions.test.ts",
  "packages/testing/test/store-contract.test.ts",
  "test/crash/client-restart.test.ts",
  "test/crash/delegated.test.ts",
  "test/crash/members.test.ts",
  "test/crash/steps.test.ts",
  "test/crash/suspects.test.ts",
  "test/crash/webhooks.test.ts",
  "test/e2e/analyst.test.ts",
  "test/fuzz/fuzz.test.ts",
  "test/fuzz/grpc.test.ts",
  "test/fuzz/older.test.ts",
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

/** The slowest files of each project, slowest first: test/long-first.ts. A file that is missing here costs a few seconds at most. */
export const slowest: readonly string[] = [
  // long
  "packages/frameworks/test/crash/kills.test.ts",
  "test/crash/kill.test.ts",
  "test/fuzz/fuzz.test.ts",
  "packages/a2a/test/cards/changes.test.ts",
  "packages/sql/test/sqlite/contract.test.ts",
  "test/crash/steps.test.ts",
  "test/crash/delegated.test.ts",
  "packages/conform/test/mutants.test.ts",
  "packages/conform/test/own.test.ts",
  "test/crash/delegation.test.ts",
  "test/crash/webhooks.test.ts",
  "test/isolation/isolation.test.ts",
  "packages/conform/test/special.test.ts",
  "packages/conform/test/official.test.ts",
  "packages/conform/test/hostile.test.ts",
  "packages/cli/test/dev.test.ts",
  "packages/conform/test/healthy.test.ts",
  // unit and alone
  "packages/cli/test/serve.test.ts",
  "test/behaviour/behaviour.test.ts",
  "packages/node/test/host-contract.test.ts",
  "packages/cli/test/cli.test.ts",
  "packages/node/test/hostile-client.test.ts",
  "packages/server/test/push/parallel.test.ts",
  "packages/node/test/contract.test.ts",
  "packages/cli/test/official.test.ts",
  // postgres
  "test/cluster/rolling.test.ts",
  "packages/sql/test/postgres/contract.test.ts",
  "examples/dbos/test/orders.test.ts",
  // attack
  "test/attack/tasks.test.ts",
  "test/attack/readers.test.ts",
  "test/attack/large-files.test.ts",
  "test/attack/bodies.test.ts",
  "test/attack/replies.test.ts",
  "test/attack/blobs.test.ts",
  // release
  "test/release/tarballs.test.ts",
  "test/types/declarations.test.ts",
  "test/release/release.test.ts",
  "test/release/extension.test.ts",
  // docs, browser, examples, interop
  "test/docs/help.test.ts",
  "test/docs/packages.test.ts",
  "test/docs/snippets.test.ts",
  "test/docs/pairs.test.ts",
  "test/browser/console.test.ts",
  "test/browser/browser.test.ts",
  "test/examples/kill.test.ts",
  "test/interop/quiet.test.ts",
];
