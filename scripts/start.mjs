// npm start: the example agent, from a fresh clone.

import { become, ready } from "./ready.mjs";

await ready();
await become("examples/data-analyst/dist/main.js", process.argv.slice(2));
