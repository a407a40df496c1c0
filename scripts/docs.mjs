// npm run docs: the documentation site.

import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { index } from "../site/pages.mjs";
import { script } from "./exec.mjs";
import { install, installed, root } from "./ready.mjs";

const usage = `npm run docs -- [--dev | --index | --record] [--base PATH]

Builds the site in site/dist, and checks its links. Exits with 1 if something is wrong.

  --dev      serve the pages while they are written
  --index    only write what docs/README.md, configuration.md and errors.md take from the code, as every form does
  --record   record the crash that README.md shows, from the programs of docs/start.md
  --base     build for a host that serves the site below a path, such as /parley/`;

const folder = join(root, "site");

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

const options = /** @type {const} */ ({
  dev: { type: "boolean" },
  index: { type: "boolean" },
  record: { type: "boolean" },
  base: { type: "string" },
});
await script(usage, options, async (values) => {
  if (typeof values["base"] === "string") process.env["DOCS_BASE"] = values["base"];
  await installed();
  if (values["record"] === true) return (await import("../site/record.mjs")).writeRecording();
  write(join(root, "docs", "README.md"), index());
  await writeGenerated();
  if (values["index"] === true) return;
  // Apart from the workspace: 150 MB that only this command needs.
  await install(folder, ["--ignore-scripts"]);
  const site = /** @type {{ buildSite(): Promise<boolean>, develop(): Promise<void> }} */ (
    await import(pathToFileURL(join(folder, "build.mjs")).href)
  );
  if (values["dev"] === true) await site.develop();
  else if (!(await site.buildSite())) process.exitCode = 1;
});
