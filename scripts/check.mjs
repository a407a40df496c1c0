// npm run check: runs every static check. Prints a line for each, and the output of those that fail.

import { execFile } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { missingSources } from "./maps.mjs";
import { installed, root } from "./ready.mjs";

/** Packages that are published. */
const packages = ["a2a", "sql", "grpc", "node", "conform", "cli"];

/**
 * @typedef {{ ok: boolean, output: string }} Result
 * @typedef {{ name: string, run: () => Promise<Result> }} Check
 */

/**
 * @param {string} file @param {readonly string[]} args @param {string} [cwd]
 * @returns {Promise<Result>}
 */
function exec(file, args, cwd = root) {
  const windows = process.platform === "win32";
  return new Promise((done) => {
    execFile(file, args, { cwd, shell: windows, maxBuffer: 64 << 20 }, (error, stdout, stderr) => {
      const unstarted = error !== null && typeof error.code === "string" ? `${error.message}\n` : "";
      done({ ok: error === null, output: unstarted + stdout + stderr });
    });
  });
}

/** Runs a tool of `node_modules/.bin`. @param {string} name @param {readonly string[]} args @param {string} [cwd] */
function tool(name, args, cwd) {
  return exec(join(root, "node_modules", ".bin", name), args, cwd);
}

/** Runs a script of the root's package.json. The script must be one call of one tool. @param {string} name */
function script(name) {
  const { scripts } = /** @type {{ scripts: Record<string, string> }} */ (
    JSON.parse(readFileSync(join(root, "package.json"), "utf8"))
  );
  const [bin = "", ...args] = scripts[name]?.split(" ") ?? [];
  return tool(bin, args);
}

/**
 * Packs a package as it would be published, and checks the tarball.
 * @param {string} name @returns {Promise<Result>}
 */
async function checkTarball(name) {
  const folder = mkdtempSync(join(tmpdir(), "parley-pack-"));
  try {
    const cwd = join(root, "packages", name);
    const packed = await exec("npm", ["pack", "--json", "--loglevel=error", "--pack-destination", folder], cwd);
    if (!packed.ok) return packed;
    const [{ filename }] = /** @type {[{ filename: string }]} */ (JSON.parse(packed.output));
    const tarball = join(folder, filename);
    const looks = [await tool("publint", ["run", tarball, "--strict"])];
    // The command line has no entry point, so there are no types to check.
    if (name !== "cli") looks.push(await tool("attw", [tarball, "--profile", "esm-only"]));
    looks.push(await exec("tar", ["-xzf", filename], folder));
    const missing = missingSources(join(folder, "package"));
    looks.push({
      ok: missing.length === 0,
      output: missing.map((line) => `${line}, which is not in the package\n`).join(""),
    });
    return { ok: looks.every(({ ok }) => ok), output: looks.map(({ output }) => output).join("") };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/**
 * Changed packages need a changeset: since the remote's main branch where there is one, else since the last release.
 * @returns {Promise<Result>}
 */
async function checkChangesets() {
  const remote = await exec("git", ["rev-parse", "--verify", "--quiet", "origin/main"]);
  if (remote.ok) return tool("changeset", ["status", "--since=origin/main"]);
  const local = await exec("git", ["rev-parse", "--verify", "--quiet", "main"]);
  // A clone of one commit has nothing to compare with: then only the format of the changesets is checked.
  return tool("changeset", local.ok ? ["status"] : ["status", "--since=HEAD"]);
}

/** Runs first, because the other checks need the build. @type {Check} */
const types = { name: "types", run: () => script("types") };

/** @type {readonly Check[]} */
const others = [
  { name: "lint", run: () => script("lint") },
  { name: "format", run: () => tool("prettier", ["--check", "--log-level=warn", "."]) },
  { name: "unused", run: () => script("unused") },
  ...packages.map((name) => ({ name: `package ${name}`, run: () => checkTarball(name) })),
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

const results = [await report(types)];
const waiting = [...others];
await Promise.all(
  Array.from({ length: availableParallelism() }, async () => {
    for (let next = waiting.shift(); next !== undefined; next = waiting.shift()) results.push(await report(next));
  }),
);

const failed = results.filter((ok) => !ok).length;
console.log(failed === 0 ? `${results.length} checks passed` : `${failed} of ${results.length} checks failed`);
process.exitCode = failed === 0 ? 0 : 1;
