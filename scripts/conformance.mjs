// npm run conformance: agents for the public conformance kits, and what is expected of them. conformance/README.md

import { become, ready } from "./ready.mjs";

await ready(["conformance"]);
await become("conformance/dist/main.js", process.argv.slice(2));
