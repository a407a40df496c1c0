// npm test: the tests, from a fresh clone. Arguments go to vitest: npm test -- packages/a2a/test/model
// With --full the long tests run at full length, and the tests of crashes use the disk: npm run test:long. CONTRIBUTING.md lists all commands.

import { become, ready } from "./ready.mjs";

const args = process.argv.slice(2);
const wanted = args.filter((arg) => arg !== "--full");
if (wanted.length < args.length) process.env["PARLEY_TESTS"] = "full";
// Tests that need a browser or another runtime have commands of their own.
const projects = wanted.some((arg) => arg.startsWith("--project"))
  ? []
  : ["--project=unit", "--project=alone", "--project=long"];

/** A third of the time of all tests: these run in `npm run test:long` only, or when they are named. */
const slow = [
  "packages/a2a/test/cards/changes.test.ts",
  "packages/conform/test/hostile.test.ts",
  "packages/conform/test/mutants.test.ts",
  "packages/conform/test/official.test.ts",
  "packages/conform/test/own.test.ts",
  "packages/conform/test/special.test.ts",
  "packages/sql/test/sqlite/huge.test.ts",
  "test/crash/client-restart.test.ts",
  "test/crash/delegated.test.ts",
  "test/crash/members.test.ts",
  "test/crash/steps.test.ts",
  "test/crash/suspects.test.ts",
  "test/crash/webhooks.test.ts",
  "test/fuzz/fuzz.test.ts",
  "test/fuzz/grpc.test.ts",
  "test/fuzz/older.test.ts",
];
const isShort = wanted.length === args.length && projects.length > 0 && wanted.every((arg) => arg.startsWith("-"));
const without = isShort ? slow.map((path) => `--exclude=${path}`) : [];

await ready();
await become("node_modules/vitest/vitest.mjs", ["run", ...projects, ...without, ...wanted]);
