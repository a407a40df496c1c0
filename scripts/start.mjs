// npm start: an example agent, from a fresh clone: the data analyst, or another one by its name: npm start -- reimbursement --port 4001.

import { existsSync, readdirSync } from "node:fs";
import { parseArgs } from "node:util";
import { become, ready } from "./ready.mjs";

/** @param {string} why @returns {never} */
function refuse(why) {
  process.stderr.write(`${why}\nUsage: npm start -- [example] [--port <port>]\n`);
  process.exit(2);
}

function given() {
  try {
    return parseArgs({ allowPositionals: true, options: { port: { type: "string" } } });
  } catch (error) {
    return refuse(error instanceof Error ? error.message : String(error));
  }
}

/** The program of an example, below the root. @param {string} example */
const programs = (example) =>
  [`examples/${example}/main.ts`, `examples/${example}/src/main.ts`].filter((file) =>
    existsSync(new URL(`../${file}`, import.meta.url)),
  );

const {
  values: { port },
  positionals: [name = "data-analyst", ...more],
} = given();
const examples = readdirSync(new URL("../examples", import.meta.url))
  .filter((each) => programs(each).length > 0)
  .toSorted();
if (!examples.includes(name)) refuse(`There is no example ${JSON.stringify(name)}. There are ${examples.join(", ")}.`);
if (more.length > 0) refuse(`npm start takes one example; got ${[name, ...more].join(" ")}`);
if (port !== undefined) {
  if (!/^\d{1,5}$/.test(port) || Number(port) > 65_535)
    refuse(`--port must be a whole number from 0 to 65535; got ${JSON.stringify(port)}`);
  process.env["PORT"] = port;
}
await ready();
const [program = ""] = programs(name);
// The data analyst is built, and starts faster so.
await become(name === "data-analyst" ? "examples/data-analyst/dist/main.js" : program);
