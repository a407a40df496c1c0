// npm test: the tests, from a fresh clone. Arguments go to vitest: npm test -- packages/a2a/test/model

import { become, ready } from "./ready.mjs";

const args = process.argv.slice(2);
// What needs a browser or another runtime has commands of its own.
const projects = args.some((arg) => arg.startsWith("--project")) ? [] : ["--project=unit", "--project=long"];

await ready();
await become("node_modules/vitest/vitest.mjs", ["run", ...projects, ...args]);
