import { build, buildSync, type Plugin } from "esbuild";
import { createHash } from "node:crypto";
import { mkdirSync, renameSync, writeFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { basename, dirname, join } from "node:path";
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
 * The same, with everything in it that the program imports, as it is now. What it imports later is in files next to it. A start takes half the
 * time. A program that is started repeatedly over minutes stays the same, even if the packages are built meanwhile.
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

/** Modules find what is beside their files, such as the program of a thread, where they are. */
const placesOfFiles: Plugin = {
  name: "places-of-files",
  setup({ onLoad }) {
    onLoad({ filter: /[\\/](dist|node_modules)[\\/].*\.m?js$/ }, async ({ path }) => ({
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
