// npm run docs: builds the documentation site in site/dist, and checks its links. The exit code is 1 where something is wrong.
// npm run docs -- --dev: serves the pages while they are written.  npm run docs -- --preview [PORT]: serves what was built.
// npm run docs -- --index: only writes docs/README.md and the options in docs/configuration.md, as every form does.
// npm run docs -- --record: records the crash that README.md shows, from the programs of docs/start.md.
// npm run docs -- --base /parley/: builds for a host that serves the site below a path.

import { execFileSync } from "node:child_process";
import { existsSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { parseArgs } from "node:util";
import { index } from "../site/pages.mjs";
import { installed, root } from "./ready.mjs";

/**
 * The generator, as far as this script calls it.
 * @typedef {{ buildSite(): Promise<boolean>, develop(): Promise<void>, preview(port: number): Promise<void> }} Generator
 */

const folder = join(root, "site");

/** Installs the generator, unless it is installed. It is apart from the workspace: 150 MB that only this command needs. */
function install() {
  const done = join(folder, "node_modules", ".package-lock.json");
  if (existsSync(done) && statSync(done).mtimeMs >= statSync(join(folder, "package-lock.json")).mtimeMs) return;
  process.stderr.write("Installing the generator of the site (npm ci in site/) …\n");
  const npm = process.env["npm_execpath"];
  const args = ["ci", "--prefix", folder, "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"];
  /** @type {import("node:child_process").ExecFileSyncOptions} */
  const options = { cwd: folder, stdio: ["ignore", 2, 2], shell: process.platform === "win32" };
  if (npm?.endsWith("js")) execFileSync(process.execPath, [npm, ...args], { ...options, shell: false });
  else execFileSync("npm", args, options);
}

/** @returns {Promise<Generator>} */
async function generator() {
  return /** @type {Promise<Generator>} */ (import(pathToFileURL(join(folder, "build.mjs")).href));
}

const { values, positionals } = parseArgs({
  options: {
    dev: { type: "boolean" },
    preview: { type: "boolean" },
    index: { type: "boolean" },
    record: { type: "boolean" },
    base: { type: "string" },
  },
  allowPositionals: true,
});
if (values.base !== undefined) process.env["DOCS_BASE"] = values.base;

/** Writes the options of the code into docs/configuration.md. */
async function writeConfiguration() {
  // Loaded here, because what it needs may just have been installed.
  const { withOptions } = await import("./options.mjs");
  const file = join(root, "docs", "configuration.md");
  const { format } = await import("oxfmt");
  const page = withOptions(readFileSync(file, "utf8"));
  writeFileSync(file, (await format(file, page, { printWidth: 120 })).code);
}

async function main() {
  await installed();
  if (values.record === true) return (await import("../site/record.mjs")).writeRecording();
  writeFileSync(join(root, "docs", "README.md"), index());
  await writeConfiguration();
  if (values.index === true) return;
  install();
  const site = await generator();
  if (values.dev === true) await site.develop();
  else if (values.preview === true) await site.preview(Number(positionals[0] ?? "4173"));
  else if (!(await site.buildSite())) process.exitCode = 1;
}

try {
  await main();
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 1;
}
