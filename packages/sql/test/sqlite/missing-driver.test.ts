import { execFile } from "node:child_process";
import { cp, mkdir, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, it } from "vitest";
import { defaultDriver } from "../../src/sqlite/libraries.ts";

const root = fileURLToPath(new URL("../../../..", import.meta.url));

const program = `
import { defineAgent, serve } from "@parley/node";
import { sqliteStore } from "@parley/sql/sqlite";

const agent = defineAgent({
  name: "Echo", description: "Says it again.", version: "1.0.0", skills: [],
  onMessage: (turn) => turn.reply(turn.text),
});
const driver = process.argv[2];
try {
  const store = driver === undefined ? undefined : await sqliteStore({ path: "tasks.db", driver });
  const server = await serve(agent, { port: 0, ...(store && { store }) });
  await server.close({ grace: 0 });
  console.log("served");
} catch (error) {
  console.log(error.code + ": " + error.message);
}
`;

interface Manifest {
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly peerDependenciesMeta?: Readonly<Record<string, { readonly optional?: boolean }>>;
}

async function manifestOf(folder: string): Promise<Manifest> {
  return JSON.parse(await readFile(join(folder, "package.json"), "utf8")) as Manifest;
}

let project = "";
// Copies the files that npm installs in a project that depends on these packages.
beforeAll(async () => {
  project = await mkdtemp(join(tmpdir(), "parley-driver-"));
  const modules = join(project, "node_modules");
  for (const name of ["a2a", "server", "node", "sql"]) {
    const [from, to] = [join(root, "packages", name), join(modules, "@parley", name)];
    await mkdir(to, { recursive: true });
    await cp(join(from, "package.json"), join(to, "package.json"));
    await cp(join(from, "dist"), join(to, "dist"), { recursive: true });
    const others = Object.keys((await manifestOf(from)).dependencies ?? {}).filter(
      (one) => !one.startsWith("@parley/"),
    );
    for (const other of others) {
      await cp(join(root, "node_modules", other), join(modules, other), { recursive: true });
    }
  }
  await writeFile(join(project, "package.json"), '{ "type": "module" }');
  await writeFile(join(project, "main.js"), program);
});
afterAll(() => rm(project, { recursive: true }));

async function said(...args: readonly string[]): Promise<string> {
  return saidIn(project, ...args);
}

async function saidIn(cwd: string, ...args: readonly string[]): Promise<string> {
  const { stdout } = await promisify(execFile)(process.execPath, [join(project, "main.js"), ...args], { cwd });
  return stdout.trimEnd();
}

it("a project without native code serves if Node has SQLite, and otherwise gets an error that names the package to install", async () => {
  const { dependencies, peerDependenciesMeta } = await manifestOf(join(root, "packages", "sql"));
  expect(Object.keys(dependencies ?? {})).toEqual(["@parley/a2a", "@parley/server"]);
  expect(peerDependenciesMeta).toEqual({ libsql: { optional: true }, pg: { optional: true } });
  expect(await said()).toBe(
    defaultDriver() === "libsql"
      ? `Unavailable: Node ${process.versions.node} has no built-in SQLite. Install a driver with \`npm install libsql@0.5.29\`, or use Node 22.16 or newer`
      : "served",
  );
});

it("the error for a missing driver names it and says what to do", async () => {
  expect(await said("libsql")).toBe("Unavailable: The driver libsql is not installed: `npm install libsql@0.5.29`");
  expect(await said("bun:sqlite")).toBe(
    `Unavailable: Node ${process.versions.node} has no bun:sqlite. Leave out \`driver\`, and the store uses the library that is available`,
  );
  if (defaultDriver() === "libsql") {
    expect(await said("node:sqlite")).toMatch(/Node 20\S+ has no node:sqlite, which needs Node 22.16 or newer/);
  } else expect(await said("node:sqlite")).toBe("served");
});

it("a program outside of the project finds the libsql of the project that it starts in, as with npx", async () => {
  const started = await mkdtemp(join(tmpdir(), "parley-project-"));
  await mkdir(join(started, "node_modules"));
  await symlink(join(root, "node_modules", "libsql"), join(started, "node_modules", "libsql"));
  expect(await saidIn(started, "libsql")).toBe("served");
  await rm(started, { recursive: true });
});

it("the version in the error is the one that the tests use", async () => {
  const { devDependencies } = (await manifestOf(root)) as { devDependencies?: Record<string, string> };
  expect(devDependencies?.["libsql"]).toBe("0.5.29");
});
