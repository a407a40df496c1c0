// npm start: an example agent, from a fresh clone: the data analyst, or another one by its name: npm start -- reimbursement --port 4001.

import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { become, ready, root } from "./ready.mjs";

/** The program of an example, below the root. @param {string} example */
const programOf = (example) =>
  [`examples/${example}/main.ts`, `examples/${example}/src/main.ts`].find((file) => existsSync(join(root, file)));

/** The program that the arguments name. */
function wanted() {
  const { values, positionals } = parseArgs({ allowPositionals: true, options: { port: { type: "string" } } });
  const [name = "data-analyst", ...more] = positionals;
  const examples = readdirSync(join(root, "examples")).filter(programOf).toSorted();
  if (!examples.includes(name))
    throw new Error(`There is no example ${JSON.stringify(name)}. There are ${examples.join(", ")}.`);
  if (more.length > 0) throw new Error(`npm start takes one example; got ${positionals.join(" ")}`);
  const port = values.port ?? "0";
  if (!/^\d{1,5}$/.test(port) || Number(port) > 65_535)
    throw new Error(`--port must be a whole number from 0 to 65535; got ${JSON.stringify(port)}`);
  if (values.port !== undefined) process.env["PORT"] = port;
  // The data analyst is built, and starts faster so.
  return name === "data-analyst" ? "examples/data-analyst/dist/main.js" : (programOf(name) ?? "");
}

let program = "";
try {
  program = wanted();
} catch (error) {
  process.stderr.write(`${/** @type {Error} */ (error).message}\nUsage: npm start -- [example] [--port <port>]\n`);
  process.exit(2);
}
await ready();
await become(program);
