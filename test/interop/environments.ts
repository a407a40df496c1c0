import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { chmod, mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import type { TestProject } from "vitest/node";

/** The peers' environments. They are installed below node_modules, and reused until their inputs change. */

const root = join(import.meta.dirname, "../..");
const cache = join(root, "node_modules/.cache/parley-interop");
export const peers = join(import.meta.dirname, "peers");

/** A folder with programs, or why it is missing. */
export type Environment = { readonly programs: string } | { readonly missing: string };

export interface Environments {
  readonly python1: Environment;
  readonly python03: Environment;
  readonly go: Environment;
  readonly adk: Environment;
  readonly strands: Environment;
  readonly crewai: Environment;
  readonly langgraph: Environment;
  /** Has Node 22, which Mastra requires. The frameworks are in `peers/node`. */
  readonly node: Environment;
  /** Has the Claude Agent SDK and its program. */
  readonly claude: Environment;
}

declare module "vitest" {
  export interface ProvidedContext {
    readonly environments: Environments;
  }
}

const windows = process.platform === "win32";

/** Nine installs run in parallel, alongside other suites. */
const timeout = 15 * 60_000;

async function run(file: string, args: readonly string[], cwd = root): Promise<string> {
  // Otherwise Debian's Go does not switch toolchains.
  const env = { ...process.env, GOTOOLCHAIN: "auto" };
  const options = { cwd, env, timeout, maxBuffer: 64 << 20 };
  const { stdout } = await promisify(execFile)(file, [...args], options);
  return stdout.trim();
}

async function python(name: string): Promise<string> {
  const requirements = join(peers, "python", name);
  const system = windows ? "python" : "python3";
  const version = await run(system, ["--version"]);
  const digest = createHash("sha256")
    .update(version)
    .update(await readFile(requirements))
    .digest("hex");
  const folder = join(cache, `python-${digest.slice(0, 16)}`);
  const programs = join(folder, windows ? "Scripts" : "bin");
  const done = join(folder, "done");
  if (existsSync(done)) return programs;
  await rm(folder, { recursive: true, force: true });
  await run(system, ["-m", "venv", folder]);
  // Each file lists all transitive dependencies.
  const options = ["--quiet", "--disable-pip-version-check", "--no-deps"];
  const install = ["-m", "pip", "install", ...options, "--requirement", requirements];
  await run(join(programs, "python"), install);
  await writeFile(done, version);
  return programs;
}

/** Builds the Go programs each time, because Go itself rebuilds only what changed. */
async function go(): Promise<string> {
  const programs = join(cache, "go");
  await mkdir(programs, { recursive: true });
  // The SDK's command line is a tool in go.mod.
  const all = ["./...", "github.com/a2aproject/a2a-go/v2/cmd/a2a"];
  await run(await findGo(), ["build", "-o", `${programs}/`, ...all], join(peers, "go"));
  return programs;
}

/** Installs a package outside of the workspace, unless it matches its lockfile. */
async function install(folder: string, ...options: readonly string[]): Promise<string> {
  const lock = await readFile(join(folder, "package-lock.json"));
  const digest = createHash("sha256").update(lock).digest("hex");
  const done = join(folder, "node_modules", `.done-${digest.slice(0, 16)}`);
  if (!existsSync(done)) {
    const quiet = ["--no-audit", "--no-fund", "--loglevel=error"];
    await run("npm", ["ci", "--ignore-scripts", ...quiet, ...options], folder);
    await writeFile(done, "");
  }
  return folder;
}

/** The JavaScript frameworks, with Node 22. */
async function node(): Promise<string> {
  const folder = await install(join(peers, "node"));
  const programs = join(folder, "node_modules", `node-22-${process.platform}-${process.arch}`, "bin");
  if (!existsSync(programs)) throw new Error(`the lockfile has no Node 22 for ${process.platform} on ${process.arch}`);
  return programs;
}

/** Finds Go with the required toolchain. Go 1.21 and newer fetches it automatically; for older versions, downloads it as a module. */
async function findGo(): Promise<string> {
  const [version = "", os, arch] = (await run("go", ["env", "GOVERSION", "GOOS", "GOARCH"])).split(/\s+/);
  if (Number(/^go1\.(\d+)/.exec(version)?.[1] ?? 0) >= 21) return "go";
  const toolchain = `golang.org/toolchain@v0.0.1-go1.25.0.${os}-${arch}`;
  const { Dir: folder } = JSON.parse(await run("go", ["mod", "download", "-json", toolchain])) as { Dir: string };
  for (const programs of ["bin", `pkg/tool/${os}_${arch}`]) {
    for (const name of await readdir(join(folder, programs))) await chmod(join(folder, programs, name), 0o555);
  }
  return join(folder, "bin/go");
}

async function attempt(what: string, make: () => Promise<string>): Promise<Environment> {
  try {
    const programs = await make();
    process.stdout.write(`interop: ${what}: ready\n`);
    return { programs };
  } catch (error) {
    const { message, stderr = "", killed = false } = error as Error & { stderr?: string; killed?: boolean };
    const cause = killed ? `${message}\nStopped after ${timeout / 60_000} minutes` : message;
    const missing = `${what}: setup failed: ${cause}${cause.includes(stderr) ? "" : `\n${stderr}`}`;
    process.stdout.write(`interop: ${missing}\n`);
    return { missing };
  }
}

/** Vitest calls this once, before the tests of the project. */
export default async function setup(project: TestProject): Promise<void> {
  const [python1, python03, golang, adk, strands, crewai, langgraph, frameworks, claudeSdk] = await Promise.all([
    attempt("Python, the SDK 1.3.0", () => python("requirements-1.txt")),
    attempt("Python, the SDK 0.3.26", () => python("requirements-0.3.txt")),
    attempt("Go, the SDKs 2.3.1 and 0.3.15", go),
    attempt("ADK for Python 2.13.0", () => python("requirements-adk.txt")),
    attempt("Strands 1.62.0", () => python("requirements-strands.txt")),
    attempt("CrewAI 1.15.30", () => python("requirements-crewai.txt")),
    attempt("LangGraph's server 0.16.7", () => python("requirements-langgraph.txt")),
    attempt("ADK for JavaScript 2.0.0, Mastra 1.71.0 and MCP's inspector 2.12.0", node),
    attempt("the Claude Agent SDK 0.3.330", () => install(join(import.meta.dirname, "claude"), "--legacy-peer-deps")),
  ]);
  const environments = {
    python1,
    python03,
    go: golang,
    adk,
    strands,
    crewai,
    langgraph,
    node: frameworks,
    claude: claudeSdk,
  };
  project.provide("environments", environments);
}
