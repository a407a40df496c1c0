// npm run bench: Parley beside the official SDK and a bare server. npm run bench -- --help

import { become, ready } from "./ready.mjs";

await ready(["benchmarks"]);
await become("benchmarks/dist/main.js", process.argv.slice(2));
