// npm run docs: builds the documentation site in site/dist, and checks its links. The exit code is 1 where something is wrong.
// npm run docs -- --dev: serves the pages while they are written.
// npm run docs -- --index: only writes docs/README.md and what docs/configuration.md and docs/errors.md take from the code, as every form does.
// npm run docs -- --record: records the crash that README.md shows, from the programs of docs/start.md.
// npm run docs -- --base /parley/: builds for a host that serves the site below a path.

import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { parseArgs } from "node:util";
import { index } from "../site/pages.mjs";
import { install, installed, root } from "./ready.mjs";

const folder = join(root, "site");
const { values } = parseArgs({
  options: {
    dev: { type: "boolean" },
    index: { type: "boolean" },
    record: { type: "boolean" },
    base: { type: "string" },
  },
});
if (values.base !== undefined) process.env["DOCS_BASE"] = values.base;

/** Writes a page that changed: tests read it meanwhile. @param {string} file @param {string} text */
function write(file, text) {
  if (readFileSync(file, "utf8") !== text) writeFileSync(file, text);
}

/** Writes the options and the errors of the code into their pages. */
async function writeGenerated() {
  // Loaded here, because what they need may just have been installed.
  const { withOptions } = await import("../site/options.mjs");
  const { withErrors } = await import("../site/errors.mjs");
  const { format } = await import("oxfmt");
  for (const [page, fill] of /** @type {const} */ ([
    ["configuration.md", withOptions],
    ["errors.md", withErrors],
  ])) {
    const file = join(root, "docs", page);
    write(file, (await format(file, fill(readFileSync(file, "utf8")), { printWidth: 120 })).code);
  }
}

async function main() {
  await installed();
  if (values.record === true) return (await import("../site/record.mjs")).writeRecording();
  write(join(root, "docs", "README.md"), index());
  await writeGenerated();
  if (values.index === true) return;
  // Apart from the workspace: 150 MB that only this command needs.
  await install(folder, ["--ignore-scripts"]);
  const site = /** @type {{ buildSite(): Promise<boolean>, develop(): Promise<void> }} */ (
    await import(pathToFileURL(join(folder, "build.mjs")).href)
  );
  if (values.dev === true) await site.develop();
  else if (!(await site.buildSite())) process.exitCode = 1;
}

try {
  await main();
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}
