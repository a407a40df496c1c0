// The packages that are published: which they are, their tarballs, and what is checked of a tarball.

import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { publint } from "publint";
import { formatMessage } from "publint/utils";
import { entriesOf } from "./entries.mjs";
import { exec, tool } from "./exec.mjs";
import { root } from "./ready.mjs";

/**
 * @typedef {object} Manifest
 * @property {string} name
 * @property {string} version
 * @property {boolean} [private]
 * @property {unknown} [repository]
 * @property {Readonly<Record<string, unknown>>} [exports]
 * @property {Readonly<Record<string, string>>} [dependencies]
 * @property {Readonly<Record<string, string>>} [peerDependencies]
 */

/**
 * @typedef {object} Package
 * @property {string} folder Absolute path.
 * @property {Manifest} manifest
 */

/**
 * @typedef {object} Tarball
 * @property {string} file Absolute path.
 * @property {number} size Bytes.
 * @property {number} files How many files are in it.
 */

/** @param {string} file @returns {Manifest} */
function readManifest(file) {
  return /** @type {Manifest} */ (JSON.parse(readFileSync(file, "utf8")));
}

/**
 * The packages below `packages/` that are not private, each after those that it depends on.
 * @param {string} [workspace] @returns {Package[]}
 */
export function publishedPackages(workspace = root) {
  const parent = join(workspace, "packages");
  const waiting = readdirSync(parent)
    .filter((name) => existsSync(join(parent, name, "package.json")))
    .map((name) => ({ folder: join(parent, name), manifest: readManifest(join(parent, name, "package.json")) }))
    .filter(({ manifest }) => manifest.private !== true);
  /** @type {Package[]} */
  const sorted = [];
  while (waiting.length > 0) {
    const names = new Set(waiting.map(({ manifest }) => manifest.name));
    const at = waiting.findIndex(({ manifest }) =>
      Object.keys(manifest.dependencies ?? {}).every((on) => !names.has(on)),
    );
    if (at === -1) throw new Error(`Packages depend on each other in a circle: ${[...names].join(", ")}`);
    sorted.push(...waiting.splice(at, 1));
  }
  return sorted;
}

/**
 * Packs a package as it is published, into an existing folder.
 * @param {Package} of @param {string} into @returns {Promise<Tarball>} Rejects with what npm says.
 */
export async function pack({ folder, manifest }, into) {
  const packed = await exec("npm", ["pack", "--json", "--loglevel=error", "--pack-destination", into], folder);
  if (!packed.ok) throw new Error(`${manifest.name} cannot be packed:\n${packed.output}`);
  const [one] = /** @type {[{ filename: string, size: number, entryCount: number }]} */ (JSON.parse(packed.output));
  return { file: join(into, one.filename), size: one.size, files: one.entryCount };
}

/**
 * Built files whose source is gone: `tsc -b` leaves them where they are.
 * @param {string} unpacked A package as it was packed. @param {string} source Its folder.
 */
function staleFiles(unpacked, source) {
  if (!existsSync(join(unpacked, "dist")) || !existsSync(join(source, "src"))) return [];
  return readdirSync(join(unpacked, "dist"), { recursive: true, encoding: "utf8" })
    .filter((file) => /(?<!\.d)\.js$/.test(file) && !existsSync(join(source, "src", file.replace(/\.js$/, ".ts"))))
    .map((file) => `dist/${file} has no source; delete dist and build again`);
}

/**
 * What publint says of a tarball. A pattern of `exports` must fit files under each condition, and that of the sources fits none: they are in
 * the repository alone.
 * @param {string} file @returns {Promise<import("./exec.mjs").Result>}
 */
async function lint(file) {
  const bytes = readFileSync(file);
  const tarball = bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.byteLength);
  const { messages, pkg } = await publint({ strict: true, pack: { tarball } });
  const found = messages.filter(
    ({ code, path }) => code !== "EXPORTS_GLOB_NO_MATCHED_FILES" || path.at(-1) !== "@parley/source",
  );
  const lines = found.map((message) => `${formatMessage(message, pkg, { color: false }) ?? message.code}\n`);
  return { ok: found.length === 0, output: lines.join("") };
}

/**
 * Checks a tarball: what registries and their users expect (publint), and its types for each way to import it (attw).
 *
 * attw: the profile `node16` looks at `import` and at `require()`, for Node and for bundlers, and leaves out the resolution of Node before
 * exports, which TypeScript calls `node10`. The rule that is ignored warns that `require()` gets an ES module. That is intended: each
 * Node from 20.19 on can do it, and no package supports an older one. The profile `esm-only` would not look at `require()` at all.
 * @param {Package} of @param {string} tarball @returns {Promise<import("./exec.mjs").Result>}
 */
export async function checkTarball({ folder: source, manifest }, tarball) {
  const folder = mkdtempSync(join(tmpdir(), "parley-tarball-"));
  try {
    const looks = [await lint(tarball)];
    const entries = entriesOf(source, manifest.exports).map(([path]) => path);
    // A command line has no entry point, so there are no types to check.
    const types = ["--profile", "node16", "--ignore-rules", "cjs-resolves-to-esm"];
    if (entries.length > 0) looks.push(await tool("attw", [tarball, ...types, "--entrypoints", ...entries]));
    looks.push(await exec("tar", ["-xzf", tarball, "-C", folder]));
    const problems = staleFiles(join(folder, "package"), source);
    looks.push({ ok: problems.length === 0, output: problems.map((line) => `${line}\n`).join("") });
    return { ok: looks.every(({ ok }) => ok), output: looks.map(({ output }) => output).join("") };
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
