// node scripts/run.mjs FILE ARGUMENT…: runs a program of the repository, from a fresh clone.

import { become, ready } from "./ready.mjs";

const [file = "", ...args] = process.argv.slice(2);
await ready();
await become(file, args);
