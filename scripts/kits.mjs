// npm run kits: agents for the public conformance kits, and what is expected of them. kits/README.md

import { become, ready } from "./ready.mjs";

await ready(["kits"]);
await become("kits/dist/main.js", process.argv.slice(2));
