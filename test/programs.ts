import { build, buildSync, type Plugin } from "esbuild";
import { createHash } from "node:crypto";
import { mkdirSync, renameSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

/**
 * Node options that let tests run a TypeScript program: the program is compiled when it is loaded, and imports the built
 * packages (test/built.ts). Use `compiled` for programs that start often.
 */
export const typescript: readonly string[] = ["--import", import.meta.resolve("tsx")];

/** Inside node_modules, so that the programs find the packages. */
const folder = fileURLToPath(new URL("../node_modules/.cache/parley-tests/", import.meta.url));

/**
 * Compiles a TypeScript program, with the files that it imports, into one JavaScript file, which starts in half the time of
 * `typescript`. It imports the built packages (test/built.ts).
 *
 * @param file - The absolute path of the program, which must not depend on its location.
 * @returns The path of the JavaScript file.
 */
export function compiled(file: string): string {
  const { path, own } = outputOf(file, "compiled");
  if (made.has(path)) return path;
  buildSync({ ...options, entryPoints: [file], outfile: own, packages: "external" });
  // Other test processes may run or write this file at the same time.
  renameSync(own, path);
  made.add(path);
  return path;
}

/** The programs that this process has compiled. */
const made = new Set<string>();

/**
 * Like `compiled`, but includes the current build of this workspace's packages, which saves another quarter of the start. A program that is
 * restarted over minutes stays the same, even if the packages are rebuilt in the meantime, because a partial build is not a consistent
 * version.
 */
export async function bundled(file: string): Promise<string> {
  const { path, own } = outputOf(file, "bundled");
  await build({ ...options, entryPoints: [file], outfile: own, plugins: [dependenciesOutside, placesOfPackages] });
  renameSync(own, path);
  return path;
}

const options = {
  bundle: true,
  platform: "node",
  format: "esm",
  target: "node20",
} as const;

const dependenciesOutside: Plugin = {
  name: "dependencies-outside",
  setup({ onResolve }) {
    onResolve({ filter: /^[^./]/ }, ({ path }) => (path.startsWith("@parley/") ? undefined : { external: true, path }));
  },
};

/** Lets packages find files next to their own, such as a thread's program, in their built location. */
const placesOfPackages: Plugin = {
  name: "places-of-packages",
  setup({ onLoad }) {
    onLoad({ filter: /[\\/]packages[\\/][^\\/]+[\\/]dist[\\/].*\.js$/ }, async ({ path }) => ({
      contents: (await readFile(path, "utf8")).replaceAll("import.meta.url", JSON.stringify(pathToFileURL(path).href)),
    }));
  },
};

/** The output path of a program. `own`: the path to which this process writes first. */
function outputOf(file: string, how: string): { readonly path: string; readonly own: string } {
  const name = `${basename(file, ".ts")}-${createHash("sha256").update(`${how} ${file}`).digest("hex").slice(0, 12)}`;
  mkdirSync(folder, { recursive: true });
  return { path: join(folder, `${name}.mjs`), own: join(folder, `${name}.${process.pid}.mjs`) };
}
