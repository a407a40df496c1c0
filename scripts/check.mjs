// npm run check: runs every static check. Prints a line for each, and the output of those that fail.

import { existsSync } from "node:fs";
import { availableParallelism } from "node:os";
import { join } from "node:path";
import { exec, tool } from "./exec.mjs";
import { installed } from "./ready.mjs";
import { checkTarballs, publishedPackages } from "./tarballs.mjs";

/** @typedef {readonly [name: string, run: () => Promise<import("./exec.mjs").Result>]} Check */

/** Runs a script of the root's package.json. @param {string} name */
const script = (name) => exec("npm", ["run", "--silent", name]);

/** Packs the packages as they are published, and checks the tarballs. */
async function checkPackages() {
  /** @type {string[]} */
  const lines = [];
  await checkTarballs(({ of }, problems) => lines.push(...problems.map((each) => `${of.manifest.name}: ${each}\n`)));
  return { ok: lines.length === 0, output: lines.join("") };
}

/**
 * Changed packages need a changeset: since the remote's main branch if there is one, else since the last release. The commit of a
 * release, which has a new version, has none left.
 */
async function checkChangesets() {
  /** @param {string} branch */
  const has = async (branch) => (await exec("git", ["rev-parse", "--verify", "--quiet", branch])).ok;
  const isRemote = await has("origin/main");
  // A clone of one commit has nothing to compare with: then only the format of the changesets is checked.
  const since = isRemote ? ["--since=origin/main"] : (await has("main")) ? [] : ["--since=HEAD"];
  const status = await tool("changeset", ["status", ...since]);
  return status.ok || !isRemote || !(await isRelease()) ? status : { ok: true, output: "" };
}

/** Whether the packages have another version than on the remote's main branch. */
async function isRelease() {
  const { ok, output } = await exec("git", ["show", "origin/main:packages/a2a/package.json"]);
  const { version } = /** @type {{ version?: string }} */ (ok ? JSON.parse(output) : {});
  return ok && publishedPackages()[0]?.manifest.version !== version;
}

/** Measures what the packages with a .size-limit.json add to a page. */
async function checkSizes() {
  const measured = publishedPackages().filter(({ folder }) => existsSync(join(folder, ".size-limit.json")));
  const results = await Promise.all(measured.map(({ folder }) => tool("size-limit", [], folder)));
  return { ok: results.every(({ ok }) => ok), output: results.map(({ output }) => output).join("") };
}

/** One after the other, because the other checks need what they build. @type {Check[]} */
const builds = [
  ["types", () => script("types")],
  ["console app", () => tool("vite", ["build", "packages/console/app", "--logLevel", "error"])],
];

/** @type {Check[]} */
const others = [
  ["lint", () => script("lint")],
  ["format", () => tool("oxfmt", ["--check"])],
  ["unused", () => script("unused")],
  ["packages", checkPackages],
  ["size", checkSizes],
  ["changesets", checkChangesets],
];

/** @param {Check} check @returns {Promise<boolean>} */
async function report([name, run]) {
  const started = performance.now();
  const { ok, output } = await run();
  const seconds = ((performance.now() - started) / 1000).toFixed(1);
  console.log(`${ok ? "ok  " : "FAIL"}  ${name.padEnd(14)} ${seconds} s`);
  if (!ok) console.log(output.trimEnd().replace(/^/gm, "      "));
  return ok;
}

await installed();

/** @type {boolean[]} */
const results = [];
/** @param {Check[]} checks */
const work = async (checks) => {
  for (let next = checks.shift(); next !== undefined; next = checks.shift()) results.push(await report(next));
};
await work(builds);
await Promise.all(Array.from({ length: availableParallelism() }, () => work(others)));

const failed = results.filter((ok) => !ok).length;
console.log(failed === 0 ? `${results.length} checks passed` : `${failed} of ${results.length} checks failed`);
process.exitCode = failed === 0 ? 0 : 1;
