// npm run check: runs every static check. Prints a line for each, and the output of those that fail.

import { mkdtempSync, rmSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { basename, join } from "node:path";
import { exec, tool } from "./exec.mjs";
import { installed, root } from "./ready.mjs";
import { pack, problemsOf, publishedPackages } from "./tarballs.mjs";

/**
 * @typedef {import("./exec.mjs").Result} Result
 * @typedef {{ name: string, run: () => Promise<Result> }} Check
 */

/** Runs a script of the root's package.json. @param {string} name */
const script = (name) => exec("npm", ["run", "--silent", name]);

/** Packs the packages as they are published, and checks the tarballs. @returns {Promise<Result>} */
async function checkPackages() {
  const folder = mkdtempSync(join(tmpdir(), "parley-pack-"));
  try {
    const lines = [];
    for (const one of await pack(folder))
      for (const problem of await problemsOf(one)) lines.push(`${one.of.manifest.name}: ${problem}\n`);
    return { ok: lines.length === 0, output: lines.join("") };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/**
 * Changed packages need a changeset: since the remote's main branch if there is one, else since the last release. The commit of a
 * release, which has a new version, has none left.
 * @returns {Promise<Result>}
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
  const [first] = publishedPackages();
  if (first === undefined) return false;
  const path = `packages/${basename(first.folder)}/package.json`;
  const { ok, output } = await exec("git", ["show", `origin/main:${path}`]);
  return ok && /** @type {{ version?: unknown }} */ (JSON.parse(output)).version !== first.manifest.version;
}

/** Runs first, because the other checks need the build. @type {Check} */
const types = { name: "types", run: () => script("types") };

/** The application of the console, which its package contains. @type {Check} */
const app = { name: "console app", run: () => tool("vite", ["build", "packages/console/app", "--logLevel", "error"]) };

/** @type {readonly Check[]} */
const others = [
  { name: "lint", run: () => script("lint") },
  { name: "format", run: () => tool("oxfmt", ["--check"]) },
  { name: "unused", run: () => script("unused") },
  { name: "packages", run: checkPackages },
  { name: "size", run: () => tool("size-limit", [], join(root, "packages", "a2a")) },
  { name: "changesets", run: checkChangesets },
];

/** @param {Check} check @returns {Promise<boolean>} */
async function report({ name, run }) {
  const started = performance.now();
  const { ok, output } = await run();
  const seconds = ((performance.now() - started) / 1000).toFixed(1);
  console.log(`${ok ? "ok  " : "FAIL"}  ${name.padEnd(14)} ${seconds} s`);
  if (!ok) console.log(output.trimEnd().replace(/^/gm, "      "));
  return ok;
}

await installed();

const results = [await report(types), await report(app)];
const waiting = [...others];
await Promise.all(
  Array.from({ length: availableParallelism() }, async () => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) results.push(await report(next));
  }),
);

const failed = results.filter((ok) => !ok).length;
console.log(failed === 0 ? `${results.length} checks passed` : `${failed} of ${results.length} checks failed`);
process.exitCode = failed === 0 ? 0 : 1;
