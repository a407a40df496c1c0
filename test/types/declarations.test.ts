import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

const exec = promisify(execFile);
const folder = fileURLToPath(new URL(".", import.meta.url));
const root = fileURLToPath(new URL("../..", import.meta.url));

/** The oldest compiler that the README promises, and the one that this project is built with. */
const compilers = {
  "5.0": createRequire(import.meta.url).resolve("typescript/package.json"),
  newest: join(root, "node_modules", "typescript", "package.json"),
};

/** What is compiled beside the entry points. */
const programs = ["extensions.ts", "use.ts", "values.ts"];

/** Those that programs import from. */
const packages = ["a2a", "conform", "grpc", "nats", "node", "sql"];

interface Manifest {
  readonly name: string;
  readonly version: string;
  readonly exports: Readonly<Record<string, string | { readonly types?: string }>>;
}

async function readManifest(path: string): Promise<Manifest> {
  return JSON.parse(await readFile(path, "utf8")) as Manifest;
}

function run(compiler: string, args: readonly string[], cwd: string): Promise<string> {
  const tsc = join(compiler, "..", "bin", "tsc");
  return exec(process.execPath, [tsc, ...args], { cwd }).then(
    ({ stdout }) => stdout,
    (error: unknown) => (error as { stdout: string }).stdout,
  );
}

/** Imports of every entry point with types, so that each of its declarations is looked at. */
async function everyEntry(): Promise<string> {
  const manifests = await Promise.all(
    packages.map((name) => readManifest(join(root, "packages", name, "package.json"))),
  );
  return manifests
    .flatMap(({ name, exports }) =>
      Object.entries(exports)
        .filter(([, target]) => typeof target === "object" && target.types !== undefined)
        .map(([path]) => `${name}${path.slice(1)}`),
    )
    .map((entry, i) => `export * as entry${i} from "${entry}";\n`)
    .join("");
}

let project = "";
beforeAll(async () => {
  const said = await run(compilers.newest, ["-b", "packages/cli"], root);
  if (said !== "") throw new Error(`the packages cannot be built:\n${said}`);
  // Below this folder, so that the packages are found as they are by any program beside a node_modules.
  project = await mkdtemp(join(folder, ".project-"));
  await writeFile(join(project, "package.json"), JSON.stringify({ type: "module" }));
  await writeFile(join(project, "entries.ts"), await everyEntry());
  for (const file of programs) await writeFile(join(project, file), await readFile(join(folder, file)));
});
afterAll(() => rm(project, { recursive: true, force: true }));

describe("the declarations that are published", () => {
  test("5.0 is the compiler that the pages name, and the one that is tried here", async () => {
    expect((await readManifest(compilers["5.0"])).version).toMatch(/^5\.0\./);
    for (const page of ["README.md", ...packages.map((name) => `packages/${name}/README.md`)])
      expect(await readFile(join(root, page), "utf8"), page).toContain("TypeScript 5.0");
  });

  describe.each(["5.0", "newest"] as const)("TypeScript %s", (version) => {
    // As a program for Node is compiled, and as one that a bundler takes to a browser as well. What an optional member may be
    // depends on an option, and both values are common.
    test.each([
      ["nodenext", "nodenext", ["es2022"], true],
      ["bundler", "esnext", ["es2022", "dom", "dom.iterable"], false],
    ])("compiles programs and every declaration behind them, with %s resolution", async (...options) => {
      const [resolution, module, lib, exactOptionalPropertyTypes] = options;
      const config = join(project, `tsconfig.${resolution}.json`);
      const checks = { noEmit: true, strict: true, exactOptionalPropertyTypes, skipLibCheck: false };
      const host = { target: "es2022", lib, types: ["node"], module, moduleResolution: resolution };
      await writeFile(
        config,
        JSON.stringify({ compilerOptions: { ...checks, ...host }, files: ["entries.ts", ...programs] }),
      );
      const said = await run(compilers[version], ["-p", config], project);
      expect(said).toBe("");
    });
  });
});
