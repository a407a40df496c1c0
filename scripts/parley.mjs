// npm run parley: the command line, from a clone.

import { become, ready } from "./ready.mjs";

await ready();
await become("packages/cli/dist/main.js", process.argv.slice(2));
