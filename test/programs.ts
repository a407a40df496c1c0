import { build, buildSync, type Plugin } from "esbuild";
import { createHash } from "node:crypto";
import { mkdirSync, renameSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

/**
 * What Node is given to run a program in TypeScript, in a test: the program is compiled as it is read, the packages that it
 * imports are those that are built (test/built.ts). A program that is started often is compiled once, by `compiled`.
 */
export const typescript: readonly string[] = ["--import", import.meta.resolve("tsx")];

/** Below node_modules, so that the programs find the packages. */
const folder = fileURLToPath(new URL("../node_modules/.cache/parley-tests/", import.meta.url));

/**
 * Compiles a program in TypeScript, with the files that it imports, into one file of JavaScript. To start that takes half the time
 * of a start with `typescript`. The packages that it imports are those that are built (test/built.ts).
 *
 * @param file - The absolute path of the program. It does not ask where its file is.
 * @returns The path of the JavaScript.
 */
export function compiled(file: string): string {
  const { path, own } = outputOf(file, "compiled");
  if (made.has(path)) return path;
  buildSync({ ...options, entryPoints: [file], outfile: own, packages: "external" });
  // Other processes of the tests may run it already, and make it at the same time.
  renameSync(own, path);
  made.add(path);
  return path;
}

/** What this process has compiled. */
const made = new Set<string>();

/**
 * The same, with the packages of this workspace in it as they are built now: a start takes three quarters of the time. A program that is
 * started again and again over minutes stays the same one, even if the packages are built meanwhile: half of a build is not a
 * version of anything.
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

/** The packages find what is beside their files, such as the program of a thread, where it is built. */
const placesOfPackages: Plugin = {
  name: "places-of-packages",
  setup({ onLoad }) {
    onLoad({ filter: /[\\/]packages[\\/][^\\/]+[\\/]dist[\\/].*\.js$/ }, async ({ path }) => ({
      contents: (await readFile(path, "utf8")).replaceAll("import.meta.url", JSON.stringify(pathToFileURL(path).href)),
    }));
  },
};

/** Where a program goes. `own`: where this process writes it first. */
function outputOf(file: string, how: string): { readonly path: string; readonly own: string } {
  const name = `${basename(file, ".ts")}-${createHash("sha256").update(`${how} ${file}`).digest("hex").slice(0, 12)}`;
  mkdirSync(folder, { recursive: true });
  return { path: join(folder, `${name}.mjs`), own: join(folder, `${name}.${process.pid}.mjs`) };
}
