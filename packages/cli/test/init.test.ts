import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { cp, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { libsqlVersion, packageName, toolVersions } from "../src/commands/init.ts";
import { run } from "../src/program.ts";
import { recordedIo } from "./support/io.ts";

const root = fileURLToPath(new URL("../../..", import.meta.url));
const exec = promisify(execFile);

interface Manifest {
  readonly dependencies?: Readonly<Record<string, string>>;
}

let folder = "";
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "parley-init-"));
});
afterAll(() => rm(folder, { recursive: true }));

async function init(...args: string[]): Promise<{ code: number; out: string; err: string }> {
  const { io, out, err } = recordedIo({ cwd: folder });
  const code = await run(["init", ...args], io);
  return { code, out: out(), err: err() };
}

async function readJson(path: string): Promise<unknown> {
  return JSON.parse(await readFile(path, "utf8"));
}

/** Puts a package into `node_modules` with exactly the files that it would be published with. */
async function install(name: string, modules: string): Promise<void> {
  const source = join(root, "packages", name);
  const { stdout } = await exec("npm", ["pack", "--dry-run", "--json", "--ignore-scripts"], { cwd: source });
  const [packed] = JSON.parse(stdout) as [{ files: { path: string }[] }];
  const target = join(modules, "@parley", name);
  for (const { path } of packed.files) {
    await mkdir(dirname(join(target, path)), { recursive: true });
    await cp(join(source, path), join(target, path));
  }
  const own = join(source, "node_modules");
  if ((await readdir(source)).includes("node_modules")) await symlink(own, join(target, "node_modules"));
}

/** Does nothing when all is built already. */
async function build(): Promise<void> {
  const tsc = join(root, "node_modules", "typescript", "bin", "tsc");
  await exec(process.execPath, [tsc, "-b", "packages/cli"], { cwd: root }).catch((error: unknown) => {
    throw new Error(`the packages cannot be built:\n${(error as { stdout: string }).stdout}`);
  });
}

/** What `npm install` would put there: Parley as it would be published, everything else as it is installed here. */
async function installAll(project: string): Promise<void> {
  const modules = join(project, "node_modules");
  await mkdir(join(modules, "@parley"), { recursive: true });
  for (const name of await readdir(join(root, "node_modules"))) {
    if (name !== "@parley" && name !== ".bin") await symlink(join(root, "node_modules", name), join(modules, name));
  }
  await Promise.all(["a2a", "sql", "node", "conform", "cli"].map((name) => install(name, modules)));
}

describe("parley init", () => {
  test("refuses a folder that is not empty, and touches nothing", async () => {
    await mkdir(join(folder, "full"));
    await writeFile(join(folder, "full", "mine"), "");
    const { code, out, err } = await init("full");
    expect({ code, out }).toEqual({ code: 2, out: "" });
    expect(err).toContain("full is not empty");
    expect(await readdir(join(folder, "full"))).toEqual(["mine"]);
  });

  test("writes into a fresh repository, and says where a file is in the way", async () => {
    await mkdir(join(folder, "repository", ".git"), { recursive: true });
    expect((await init("repository")).code).toBe(0);
    await writeFile(join(folder, "file"), "");
    expect(await init("file")).toMatchObject({
      code: 1,
      err: expect.stringContaining("a file of that name is in the way"),
    });
  });

  test("depends on this version of the packages, or with --link on those of a checkout", async () => {
    const { version } = (await readJson(join(root, "packages", "cli", "package.json"))) as { version: string };
    await init("published");
    const names = ["a2a", "cli", "node", "sql"].map((name) => `@parley/${name}`);
    const dependencies = Object.fromEntries(names.map((name) => [name, `^${version}`]));
    const published = (await readJson(join(folder, "published", "package.json"))) as Manifest;
    // Node 20 has no SQLite of its own; elsewhere a project needs no native code.
    const driver = process.getBuiltinModule("node:sqlite") === undefined ? { libsql: libsqlVersion } : {};
    expect(published.dependencies).toEqual({ ...dependencies, ...driver });

    await init("linked", "--link", "checkout");
    const linked = (await readJson(join(folder, "linked", "package.json"))) as Manifest;
    const { dependencies: taken = {} } = linked;
    expect(taken["@parley/a2a"]).toBe(`file:${join(folder, "checkout", "packages", "a2a")}`);
    // What one of them depends on would be asked of the registry, where a checkout's version is not.
    const named = Object.keys(taken).flatMap((name) => (name.startsWith("@parley/") ? [name.slice(8)] : []));
    for (const name of named) {
      const { dependencies: wanted = {} } = (await readJson(join(root, "packages", name, "package.json"))) as Manifest;
      const ours = Object.keys(wanted).filter((one) => one.startsWith("@parley/"));
      expect(Object.keys(taken), name).toEqual(expect.arrayContaining(ours));
    }
  });

  test("names the package after its folder", () => {
    expect(["/x/My Agent", "/x/..", "/", "/x/_a.b-c", "/x/日本"].map(packageName)).toEqual([
      "my-agent",
      "agent",
      "agent",
      "a.b-c",
      "agent",
    ]);
  });

  test("takes the tools in the versions that this project is tried with", async () => {
    const { devDependencies } = (await readJson(join(root, "package.json"))) as { devDependencies: object };
    expect(devDependencies).toMatchObject({ ...toolVersions, libsql: libsqlVersion });
  });
});

describe("a project that was just made, with the packages as they would be published", () => {
  let project = "";
  let made: { code: number; out: string };
  const parley = (...args: string[]): [string, string[]] => [
    process.execPath,
    [join(project, "node_modules", "@parley", "cli", "dist", "main.js"), ...args],
  ];

  beforeAll(async () => {
    await build();
    project = join(folder, "my-agent");
    made = await init("my-agent");
    await installAll(project);
  }, 120_000);

  test("is announced with the commands that come next", () => {
    expect(made).toMatchObject({
      code: 0,
      out:
        "Wrote an agent into my-agent. Next:\n  cd my-agent\n  npm install\n  npm start\n" +
        'And in another terminal, from the same folder:\n  npm run ask -- "roll 2d6"\n',
    });
  });

  test("has the files of a project and nothing left to fill in", async () => {
    const files = (await readdir(project)).filter((name) => name !== "node_modules").sort();
    expect(files).toEqual([".gitignore", "README.md", "agent.test.ts", "agent.ts", "package.json", "tsconfig.json"]);
    for (const file of files) expect(await readFile(join(project, file), "utf8")).not.toMatch(/__|\{\{|NAME/);
    expect(await readFile(join(project, "README.md"), "utf8")).toMatch(/^# my-agent\n/);
    expect(await readJson(join(project, "package.json"))).toMatchObject({
      name: "my-agent",
      scripts: {
        start: "parley serve agent.ts",
        dev: "parley dev agent.ts",
        ask: "parley send http://localhost:4000",
        test: "node --import tsx --test agent.test.ts",
        check: "tsc",
      },
    });
  });

  test("passes its own type check (npm run check)", async () => {
    const tsc = join(root, "node_modules", "typescript", "bin", "tsc");
    await expect(exec(process.execPath, [tsc], { cwd: project })).resolves.toMatchObject({ stdout: "" });
  });

  test("passes its own tests (npm test)", async () => {
    const { stdout } = await exec(process.execPath, ["--import", "tsx", "--test", "agent.test.ts"], { cwd: project });
    expect(stdout).toMatch(/^# pass 2$/m);
  });

  test("serves its agent (npm start), and answers (npm run ask)", async () => {
    const server = spawn(...parley("serve", "agent.ts", "--port", "0"), { cwd: project });
    try {
      let out = "";
      const url = await new Promise<string>((resolve, reject) => {
        server.stdout.setEncoding("utf8").on("data", (text: string) => {
          out += text;
          const ready = /^my-agent is ready at (\S+)\n/.exec(out);
          if (ready?.[1] !== undefined) resolve(ready[1]);
        });
        let err = "";
        server.stderr.setEncoding("utf8").on("data", (text: string) => (err += text));
        server.once("close", (code) => reject(new Error(`ended with ${code}: ${err}`)));
      });
      const { stdout } = await exec(...parley("send", url, "roll 3d1"), { cwd: project });
      expect(stdout).toMatch(/^1 \+ 1 \+ 1 = 3\n\{\n {2}"rolls": /);
      const asked = await exec(...parley("send", url, "roll"), { cwd: project });
      expect(asked.stdout).toBe("Which dice? For example 2d6.\n");
      expect(await readdir(join(project, ".parley"))).toContain("parley.db");
    } finally {
      const ended = once(server, "close");
      server.kill("SIGTERM");
      await ended;
    }
  });
});
