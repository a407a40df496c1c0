// npm test: the tests, from a fresh clone. Arguments go to vitest: npm test -- packages/a2a/test/model
// With --full the long tests run at full length, and the tests of crashes use the disk: npm run test:long. --middle takes precedence over it,
// as in .ci/run: test/counts.ts has the lengths. CONTRIBUTING.md lists all commands.

import { become, ready } from "./ready.mjs";

const args = process.argv.slice(2);
const wanted = args.filter((arg) => arg !== "--full" && arg !== "--middle");
// Tests that need a browser or another runtime have commands of their own.
const projects = wanted.some((arg) => arg.startsWith("--project"))
  ? []
  : ["--project=unit", "--project=alone", "--project=long"];
// Without the files of `slow` in test/projects.ts, unless a path is named.
const isShort = projects.length > 0 && wanted.every((arg) => arg.startsWith("-"));
if (args.includes("--middle")) process.env["PARLEY_TESTS"] = "middle";
else if (args.includes("--full")) process.env["PARLEY_TESTS"] = "full";
else if (isShort) process.env["PARLEY_TESTS"] = "short";

await ready();
await become("node_modules/vitest/vitest.mjs", ["run", ...projects, ...wanted]);
