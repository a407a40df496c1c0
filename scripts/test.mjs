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

/** A sixth of the time of all tests, most of it waiting for processes: they run at full length only, or when they are named. */
const slow = [
  "packages/conform/test/mutants.test.ts",
  "test/crash/client-restart.test.ts",
  "test/crash/delegated.test.ts",
  "test/crash/members.test.ts",
  "test/crash/steps.test.ts",
  "test/crash/suspects.test.ts",
  "test/crash/webhooks.test.ts",
];
const isShort = wanted.length === args.length && projects.length > 0 && wanted.every((arg) => arg.startsWith("-"));
const without = isShort ? slow.map((path) => `--exclude=${path}`) : [];

await ready();
await become("node_modules/vitest/vitest.mjs", ["run", ...projects, ...without, ...wanted]);
