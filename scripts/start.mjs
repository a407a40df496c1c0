// npm start: an example agent, from a fresh clone: the data analyst, or another one by its name: npm start -- reimbursement.

import { existsSync } from "node:fs";
import { become, ready } from "./ready.mjs";

const [name = "", ...args] = process.argv.slice(2);
const program = `examples/${name}/main.ts`;
await ready();
if (/^[a-z-]+$/.test(name) && existsSync(new URL(`../${program}`, import.meta.url))) {
  const { register: typescript } = await import("tsx/esm/api");
  typescript();
  await become(program, args);
} else await become("examples/data-analyst/dist/main.js", process.argv.slice(2));
