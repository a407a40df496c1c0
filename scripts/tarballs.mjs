// The packages that are published: their tarballs, and what is checked of a tarball.

import { existsSync, mkdtempSync, readFileSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { checkPackage, createPackageFromTarballData } from "@arethetypeswrong/core";
import { problemKindInfo } from "@arethetypeswrong/core/problems";
import { publint } from "publint";
import { formatMessage } from "publint/utils";
import { entriesOf } from "./entries.mjs";
import { exec } from "./exec.mjs";
import { root } from "./ready.mjs";

/**
 * @typedef {Readonly<Record<string, string>>} Texts
 * @typedef {{ name: string, version: string, private?: boolean, exports?: Readonly<Record<string, unknown>>, peerDependencies?: Texts }} Manifest
 * @typedef {{ folder: string, manifest: Manifest }} Package `folder` is absolute.
 * @typedef {{ of: Package, file: string, size: number, files: readonly string[] }} Tarball Its absolute path, its bytes, and the paths in it.
 */

/** The packages below `packages/` that are not private. @returns {Package[]} */
export function publishedPackages() {
  return readdirSync(join(root, "packages"))
    .map((name) => join(root, "packages", name, "package.json"))
    .filter((file) => existsSync(file))
    .map((file) => ({
      folder: dirname(file),
      manifest: /** @type {Manifest} */ (JSON.parse(readFileSync(file, "utf8"))),
    }))
    .filter(({ manifest }) => manifest.private !== true);
}

/** Packs every package as it is published. @param {string} into A folder. @returns {Promise<readonly Tarball[]>} */
async function pack(into) {
  const packages = publishedPackages();
  const workspaces = packages.flatMap(({ manifest }) => ["--workspace", manifest.name]);
  const args = ["pack", "--json", "--loglevel=error", "--pack-destination", into, ...workspaces];
  const { ok, output } = await exec("npm", args);
  if (!ok) throw new Error(`npm pack failed:\n${output}`);
  const packed = /** @type {{ name: string, filename: string, size: number, files: { path: string }[] }[]} */ (
    JSON.parse(output)
  );
  return packages.flatMap((of) => {
    const own = packed.filter(({ name }) => name === of.manifest.name);
    return own.map(({ filename, size, files }) => ({
      of,
      file: join(into, filename),
      size,
      files: files.map(({ path }) => path),
    }));
  });
}

/** What is wrong with the built files: `tsc -b` leaves those whose source is gone. @param {Tarball} tarball @returns {string[]} */
function buildProblems({ of, files }) {
  // Vite makes what is below `app`, and empties it first.
  const stale = files
    .filter((file) => existsSync(join(of.folder, "src")) && /^dist\/(?!app\/).*\.js$/.test(file))
    .filter((file) => !existsSync(join(of.folder, file.replace(/^dist\/(.*)\.js$/, "src/$1.ts"))))
    .map((file) => `${file} has no source; delete dist and build again`);
  if (!existsSync(join(of.folder, "app")) || files.includes("dist/app/index.html")) return stale;
  return [...stale, "dist/app/index.html is missing: build the application with npm run build"];
}

/**
 * What publint says: what registries and users expect of a package. A pattern of `exports` must fit files under each condition, and that of
 * the sources fits none: they are in the repository alone.
 * @param {ArrayBuffer} tarball @returns {Promise<readonly string[]>}
 */
async function lint(tarball) {
  const { messages, pkg } = await publint({ strict: true, pack: { tarball } });
  return messages
    .filter(({ code, path }) => code !== "EXPORTS_GLOB_NO_MATCHED_FILES" || path.at(-1) !== "@parley/source")
    .map((message) => formatMessage(message, pkg, { color: false }) ?? message.code);
}

/**
 * What attw says: whether the types fit each way to import the package, by Node and by bundlers. `node10`, the resolution of Node before
 * `exports`, is left out. That `require()` gets an ES module is intended: each Node from 20.19 on can do it.
 * @param {Uint8Array} tarball @param {Package} of @returns {Promise<readonly string[]>}
 */
async function typeProblems(tarball, { folder, manifest }) {
  const entrypoints = entriesOf(folder, manifest.exports).map(([path]) => path);
  // A command line has no entry point, so there are no types to check.
  if (entrypoints.length === 0) return [];
  const analysis = await checkPackage(createPackageFromTarballData(tarball), { entrypoints });
  if (!analysis.types) return ["it has no types"];
  return analysis.problems
    .filter(({ kind }) => kind !== "CJSResolvesToESM")
    .filter((problem) => !("resolutionKind" in problem) || problem.resolutionKind !== "node10")
    .map((problem) => `${problemKindInfo[problem.kind].title}: ${JSON.stringify(problem)}`);
}

/** Packs every package, and says what is wrong with its tarball. @param {(one: Tarball, problems: string[]) => void} report */
export async function checkTarballs(report) {
  const folder = mkdtempSync(join(tmpdir(), "parley-pack-"));
  try {
    for (const one of await pack(folder)) {
      const bytes = new Uint8Array(readFileSync(one.file));
      report(one, [...(await lint(bytes.buffer)), ...(await typeProblems(bytes, one.of)), ...buildProblems(one)]);
    }
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
