import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { basename, join, relative, resolve } from "node:path";
import { CommandError, UsageError } from "./errors.ts";
import { fileReason } from "./files.ts";
import { quote, version } from "./invocation.ts";
import type { Io } from "./io.ts";

interface InitOptions {
  readonly link?: string;
  readonly with?: string;
}

/** A framework that a project can use: a row of templates/frameworks.json. Files in its folder replace files of the same name in `agent`. */
interface Framework {
  readonly parley: readonly string[];
  /** Tested versions. */
  readonly dependencies: Readonly<Record<string, string>>;
  /** The variables that choose a real model, as shell assignments. */
  readonly model: string;
  /** Versions of Node that the framework supports. Absent: the versions that Parley supports. */
  readonly node?: string;
}

const templates = new URL("../templates/", import.meta.url);

/** Files of every new project, and their names in this package, where npm treats .gitignore specially. */
const files: Readonly<Record<string, string>> = {
  "agent.ts": "agent.ts",
  "agent.test.ts": "agent.test.ts",
  "tsconfig.json": "tsconfig.json",
  "README.md": "README.md",
  ".gitignore": "gitignore",
};

/** Packages that the project imports or runs. */
const needed = ["cli", "node", "testing"];
/** The needed packages with their dependencies, which npm would otherwise look up in the registry. */
const linked = ["a2a", "cli", "conform", "console", "grpc", "mcp", "node", "server", "sql", "testing"];

/** Tested versions of the tools. */
export const toolVersions = { "@types/node": "20.19.43", tsx: "4.23.15", typescript: "7.0.2" };

/** Tested version of the driver for a Node without SQLite. */
export const libsqlVersion = "0.5.29";

export function packageName(folder: string): string {
  const name = basename(folder)
    .toLowerCase()
    .replace(/[^a-z0-9._-]+/g, "-")
    .replace(/^[._-]+|(?<![._-])[._-]+$/g, "");
  return name === "" ? "agent" : name.slice(0, 100);
}

async function frameworkOf(name: string): Promise<Framework> {
  const text = await readFile(new URL("frameworks.json", templates), "utf8");
  const frameworks = JSON.parse(text) as Readonly<Record<string, Framework>>;
  const found = Object.hasOwn(frameworks, name) ? frameworks[name] : undefined;
  if (found === undefined)
    throw new UsageError(`--with must be one of ${Object.keys(frameworks).join(", ")}; got ${JSON.stringify(name)}`);
  return found;
}

async function manifest(folder: string, link: string | undefined, framework: Framework | undefined): Promise<string> {
  // Loaded on demand, so that other commands start without the database.
  const { defaultDriver } = await import("@parley/sql/sqlite");
  const source = (name: string): string =>
    link === undefined ? `^${version}` : `file:${join(link, "packages", name)}`;
  const names = [...(link === undefined ? needed : linked), ...(framework?.parley ?? [])];
  const value = {
    name: packageName(folder),
    version: "0.1.0",
    private: true,
    type: "module",
    engines: { node: framework?.node ?? ">=20.19" },
    scripts: {
      start: "parley serve agent.ts",
      dev: "parley dev agent.ts",
      // The address on the card: clients such as ADK for Python require the same origin.
      ask: "parley send http://127.0.0.1:4000",
      test: "node --import tsx --test agent.test.ts",
      check: "tsc",
    },
    dependencies: {
      ...Object.fromEntries(names.map((name) => [`@parley/${name}`, source(name)])),
      ...framework?.dependencies,
      // For the Node version that creates the project.
      ...(defaultDriver() === "libsql" && { libsql: libsqlVersion }),
    },
    devDependencies: toolVersions,
  };
  return `${JSON.stringify(value, null, 2)}\n`;
}

/** The template of each file of a project. */
async function sourcesOf(framework: string | undefined): Promise<ReadonlyMap<string, URL>> {
  const sources = new Map(Object.entries(files).map(([name, file]) => [name, new URL(`agent/${file}`, templates)]));
  if (framework === undefined) return sources;
  const folder = new URL(`${framework}/`, templates);
  for (const name of await readdir(folder)) sources.set(name, new URL(name, folder));
  return sources;
}

async function prepare(folder: string, shown: string): Promise<void> {
  await mkdir(folder, { recursive: true });
  const there = (await readdir(folder)).filter((name) => name !== ".git");
  if (there.length > 0) throw new UsageError(`${shown} must be a new or empty folder`);
}

/** `parley init`. */
export async function init(io: Io, where: string, options: InitOptions): Promise<number> {
  const folder = resolve(io.cwd, where);
  const link = options.link === undefined ? undefined : resolve(io.cwd, options.link);
  const framework = options.with === undefined ? undefined : await frameworkOf(options.with);
  try {
    await prepare(folder, where);
    const write = (name: string, content: string): Promise<void> =>
      writeFile(join(folder, name), content, { flag: "wx" });
    await write("package.json", await manifest(folder, link, framework));
    for (const [name, source] of await sourcesOf(options.with)) {
      const content = await readFile(source, "utf8");
      await write(name, content.replaceAll("{{NAME}}", packageName(folder)));
    }
    // Without it, linked folders would look for their dependencies next to themselves.
    if (link !== undefined) await write(".npmrc", "install-links=true\n");
  } catch (error) {
    if (error instanceof UsageError) throw error;
    throw new CommandError(`cannot write to ${where}: ${fileReason(error)}`, { cause: error });
  }
  const path = relative(io.cwd, folder);
  io.stdout.write(
    [
      `Created an agent in ${path === "" ? "this folder" : path}. Next:`,
      ...(path === "" ? [] : [`  cd ${quote(path)}`]),
      "  npm install",
      "  npm start",
      "Then, in another terminal, from the same folder:",
      '  npm run ask -- "roll 2d6"',
      ...(framework === undefined
        ? []
        : ["A scripted model answers. For a real one:", `  ${framework.model} npm start`]),
      "",
    ].join("\n"),
  );
  return 0;
}
