import { execFile } from "node:child_process";
import { mkdir, readFile, symlink, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "vitest";
import { entriesOf } from "../../scripts/entries.mjs";
import { publishedPackages } from "../../scripts/tarballs.mjs";
import { openPublished, type Published } from "../release/published.ts";

/** Compiles the declarations of all packages like a user, without `skipLibCheck`, so that any error in a declaration fails the test. */

const exec = promisify(execFile);
const folder = fileURLToPath(new URL(".", import.meta.url));
const root = fileURLToPath(new URL("../..", import.meta.url));

/** The oldest compiler that the README promises to support, the last compiler written in JavaScript, and the newest compiler. */
const compilers = ["5.0", "5.9", "7"] as const;
/** Versions of `@types/node`. */
const nodes = ["20", "22", "24", "latest"] as const;

/** Packages whose declarations use types of frameworks. Those types require a newer compiler and `skipLibCheck`. */
const ofFrameworks: readonly string[] = ["@parley/frameworks", "@parley/mcp"];
/** The oldest compiler that the READMEs of these packages promise to support. */
const oldestOfFrameworks = "5.9";

type Compiler = (typeof compilers)[number];
type NodeTypes = (typeof nodes)[number];

/** Programs to compile in addition to the entry points. */
const programs = ["extensions.ts", "use.ts", "values.ts"];

let published: Published;
let project = "";
beforeAll(async () => {
  published = await openPublished();
  project = join(published.home, "project");
  await mkdir(project);
  await writeFile(join(project, "package.json"), JSON.stringify({ private: true, type: "module" }));
  const packages = [
    ...publishedPackages().map(({ manifest }) => manifest.name),
    ...publishedPackages().flatMap(({ manifest }) => strangers(manifest.peerDependencies)),
    ...compilers.map((version) => `typescript-${version}@npm:typescript@${version}`),
    ...nodes.map((version) => `node-${version}@npm:@types/node@${version}`),
  ];
  await published.shell(`npm install --no-audit --no-fund --ignore-scripts ${packages.join(" ")}`, project);
  for (const version of nodes) {
    await mkdir(join(project, "types", version), { recursive: true });
    await symlink(join(project, `node_modules/node-${version}`), join(project, "types", version, "node"));
  }
  await writeFile(
    join(project, "entries.ts"),
    everyEntry((name) => !ofFrameworks.includes(name)),
  );
  await writeFile(
    join(project, "frameworks.ts"),
    everyEntry((name) => ofFrameworks.includes(name)),
  );
  for (const file of programs) await writeFile(join(project, file), await readFile(join(folder, file)));
});
afterAll(() => published.close());

/** Returns third-party peer dependencies, whose types the declarations use. */
function strangers(peers: Readonly<Record<string, string>> = {}): readonly string[] {
  return Object.entries(peers).flatMap(([name, range]) => (name.startsWith("@parley/") ? [] : [`'${name}@${range}'`]));
}

/** Returns a program that re-exports every entry point with types, so that the compiler checks all declarations. */
function everyEntry(of: (name: string) => boolean): string {
  return publishedPackages()
    .filter(({ manifest }) => of(manifest.name))
    .flatMap(({ folder: source, manifest: { name, exports } }) =>
      entriesOf(source, exports).map(([path]) => name + path.slice(1)),
    )
    .map((entry, i) => `export * as entry${i} from "${entry}";\n`)
    .join("");
}

interface Project {
  readonly files: readonly string[];
  readonly compiler: Compiler;
  readonly node: NodeTypes;
  /** Compiler options in addition to the common ones. */
  readonly options: Readonly<Record<string, unknown>>;
}

/** Runs the compiler. Returns the compiler's output. */
async function compile({ files, compiler, node, options }: Project): Promise<string> {
  const name = `tsconfig.${[compiler, node, ...Object.values(options), files.length].join("-").replaceAll(/[^\w.]+/g, "-")}.json`;
  const checks = { noEmit: true, strict: true, exactOptionalPropertyTypes: true, skipLibCheck: false };
  const types = { typeRoots: [`types/${node}`], types: ["node"] };
  await writeFile(join(project, name), JSON.stringify({ compilerOptions: { ...checks, ...types, ...options }, files }));
  const tsc = join(project, `node_modules/typescript-${compiler}/bin/tsc`);
  return exec(process.execPath, [tsc, "-p", name, "--pretty", "false"], { cwd: project }).then(
    ({ stdout }) => stdout,
    (error: unknown) => (error as { stdout: string }).stdout,
  );
}

test("the READMEs name 5.0 as the oldest compiler, and every package is compiled", async () => {
  const { version } = JSON.parse(await readFile(join(project, "node_modules/typescript-5.0/package.json"), "utf8")) as {
    version: string;
  };
  expect(version).toMatch(/^5\.0\./);
  const names = publishedPackages().map(({ manifest }) => manifest.name);
  expect(names).toEqual(expect.arrayContaining([...ofFrameworks]));
  for (const name of ["", ...names.filter((each) => each !== "@parley/cli")]) {
    const page = name === "" ? "README.md" : `packages/${name.slice("@parley/".length)}/README.md`;
    const oldest = ofFrameworks.includes(name) ? oldestOfFrameworks : "5.0";
    expect(await readFile(join(root, page), "utf8"), page).toContain(`TypeScript ${oldest}`);
  }
});

/** esnext includes the types of explicit resource management. */
const targets = ["es2022", "esnext"] as const;

/**
 * The newest compiler runs with all combinations. The others take ten times as long, so each gets only both targets, with the oldest and newest
 * `@types/node` that the compiler supports. `@types/node` 24 and newer require TypeScript 5.6.
 */
const cases: readonly (readonly [Compiler, NodeTypes, (typeof targets)[number]])[] = [
  ["5.0", "20", "es2022"],
  ["5.0", "22", "esnext"],
  ["5.9", "20", "esnext"],
  ["5.9", "latest", "es2022"],
  ...nodes.flatMap((node) => targets.map((target) => ["7", node, target] as const)),
];

// Uses the options of a Node program.
test.concurrent.each(cases)(
  "TypeScript %s with @types/node %s compiles programs and every declaration, for %s",
  async (compiler, node, target) => {
    const options = { target, lib: [target], module: "nodenext", moduleResolution: "nodenext" };
    expect(await compile({ files: ["entries.ts", ...programs], compiler, node, options })).toBe("");
  },
);

// Uses the options of a bundler, including for browsers, and no exactOptionalPropertyTypes, because projects with and without it are common.
test.concurrent.each(compilers)(
  "TypeScript %s compiles programs and every declaration, for a bundler",
  async (compiler) => {
    const lib = ["es2022", "dom", "dom.iterable"];
    const host = { target: "es2022", lib, module: "esnext", moduleResolution: "bundler" };
    const options = { ...host, exactOptionalPropertyTypes: false };
    expect(await compile({ files: ["entries.ts", ...programs], compiler, node: "20", options })).toBe("");
  },
);

test.concurrent.each([oldestOfFrameworks, "7"] as const)(
  "TypeScript %s compiles programs with types of frameworks, with skipLibCheck",
  async (compiler) => {
    const host = { target: "es2022", lib: ["es2022", "dom", "dom.iterable"], module: "nodenext" };
    const options = { ...host, moduleResolution: "nodenext", skipLibCheck: true };
    expect(await compile({ files: ["frameworks.ts"], compiler, node: "22", options })).toBe("");
  },
);
