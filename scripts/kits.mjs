// npm run kits: agents and expected results for the public conformance kits. See kits/README.md.

import { become, ready } from "./ready.mjs";

await ready(["kits"]);
await become("kits/dist/main.js", process.argv.slice(2));
