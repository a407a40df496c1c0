// npm start: an example agent, from a fresh clone: the data analyst, or another one by its name: npm start -- reimbursement.

import { existsSync, readdirSync } from "node:fs";
import { become, ready } from "./ready.mjs";

const [first = "", ...rest] = process.argv.slice(2);
const named = first !== "" && !first.startsWith("-");
const name = named ? first : "data-analyst";

/** The program of an example, below the root. @param {string} example */
const programs = (example) =>
  [`examples/${example}/main.ts`, `examples/${example}/src/main.ts`].filter((file) =>
    existsSync(new URL(`../${file}`, import.meta.url)),
  );

const examples = readdirSync(new URL("../examples", import.meta.url))
  .filter((each) => programs(each).length > 0)
  .toSorted();
if (!examples.includes(name)) {
  process.stderr.write(`There is no example ${JSON.stringify(name)}. There are ${examples.join(", ")}.\n`);
  process.exit(2);
}
await ready();
const [program = ""] = programs(name);
const args = named ? rest : process.argv.slice(2);
// The data analyst is built, and starts faster so.
if (name === "data-analyst") await become("examples/data-analyst/dist/main.js", args);
else {
  const { register: typescript } = await import("tsx/esm/api");
  typescript();
  await become(program, args);
}
