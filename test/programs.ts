import { build, buildSync, type Plugin } from "esbuild";
import { createHash } from "node:crypto";
import { mkdirSync, renameSync, writeFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
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
 * Like `compiled`, but includes everything that the program imports, as it is now; lazy imports become separate files. A start takes half the
 * time. A program that is restarted over minutes stays the same, even if the packages are rebuilt in the meantime.
 */
export function bundled(file: string): Promise<string> {
  const found = bundling.get(file) ?? bundle(file);
  bundling.set(file, found);
  return found;
}

/** What this process has bundled. */
const bundling = new Map<string, Promise<string>>();

async function bundle(file: string): Promise<string> {
  const { path } = outputOf(file, "bundled");
  const { outputFiles } = await build({
    ...options,
    entryPoints: [{ in: file, out: basename(path, ".mjs") }],
    outdir: folder,
    outExtension: { ".js": ".mjs" },
    splitting: true,
    chunkNames: "chunks/[name]-[hash]",
    minifyWhitespace: true,
    legalComments: "none",
    // Native modules are beside their files.
    external: ["libsql", "pg-native"],
    banner: {
      js: `import { createRequire as requireOf } from "node:module"; const require = requireOf(import.meta.url);`,
    },
    plugins: [placesOfFiles],
    write: false,
  });
  const isProgram = (output: { readonly path: string }): number => Number(output.path === path);
  // Other processes of the tests may run it already, and make it at the same time: what it imports comes before it.
  for (const { path: to, contents } of outputFiles.toSorted((one, other) => isProgram(one) - isProgram(other))) {
    const own = `${to}.${process.pid}`;
    mkdirSync(dirname(to), { recursive: true });
    writeFileSync(own, contents);
    renameSync(own, to);
  }
  return path;
}

const options = {
  bundle: true,
  platform: "node",
  format: "esm",
  target: "node20",
} as const;

/** Lets modules find files next to their own, such as a thread's program, in their original location. */
const placesOfFiles: Plugin = {
  name: "places-of-files",
  setup({ onLoad }) {
    onLoad({ filter: /[\\/](dist|node_modules)[\\/].*\.m?js$/ }, async ({ path }) => ({
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
