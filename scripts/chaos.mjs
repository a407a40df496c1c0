// npm run chaos: a cluster on PostgreSQL that is harmed, and a judgement of what its clients saw. npm run chaos -- --help

import { become, ready } from "./ready.mjs";

await ready();
const { register } = await import("tsx/esm/api");
register();
await become("test/chaos/main.ts", process.argv.slice(2));
