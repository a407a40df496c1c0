import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { libsqlVersion, packageName, toolVersions } from "../src/init.ts";
import { run } from "../src/program.ts";
import table from "../templates/frameworks.json" with { type: "json" };
import { recordedIo } from "./support/io.ts";

const root = fileURLToPath(new URL("../../..", import.meta.url));

type Texts = Readonly<Record<string, string>>;

interface Manifest {
  readonly engines?: Texts;
  readonly dependencies?: Texts;
  readonly devDependencies?: Texts;
}

interface Row {
  readonly parley: readonly string[];
  readonly dependencies: Texts;
  readonly model: string;
  readonly node?: string;
}
const frameworks: Readonly<Record<string, Row>> = table;
const orList = (names: readonly string[]): string => names.join(", ").replace(/, ([^,]*)$/, " or $1");

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

describe("parley init", () => {
  test("rejects a folder that is not empty, and changes nothing in it", async () => {
    await mkdir(join(folder, "full"));
    await writeFile(join(folder, "full", "mine"), "");
    const { code, out, err } = await init("full");
    expect({ code, out }).toEqual({ code: 2, out: "" });
    expect(err).toContain("full must be a new or empty folder");
    expect(await readdir(join(folder, "full"))).toEqual(["mine"]);
  });

  test("writes into a fresh repository, and names a file that is in the way", async () => {
    await mkdir(join(folder, "repository", ".git"), { recursive: true });
    expect((await init("repository")).code).toBe(0);
    await writeFile(join(folder, "file"), "");
    expect(await init("file")).toMatchObject({
      code: 1,
      err: expect.stringContaining("a file with that name exists"),
    });
  });

  test("depends on this version of the packages, or with --link on those of a checkout", async () => {
    const { version } = (await readJson(join(root, "packages", "cli", "package.json"))) as { version: string };
    await init("published");
    const names = ["cli", "node", "testing"].map((name) => `@parley/${name}`);
    const dependencies = Object.fromEntries(names.map((name) => [name, `^${version}`]));
    const published = (await readJson(join(folder, "published", "package.json"))) as Manifest;
    // Node 20 has no built-in SQLite; elsewhere a project needs no native code.
    const driver = process.getBuiltinModule("node:sqlite") === undefined ? { libsql: libsqlVersion } : {};
    expect(published.dependencies).toEqual({ ...dependencies, ...driver });

    await init("linked", "--link", "checkout");
    const linked = (await readJson(join(folder, "linked", "package.json"))) as Manifest;
    const { dependencies: taken = {} } = linked;
    expect(taken["@parley/a2a"]).toBe(`file:${join(folder, "checkout", "packages", "a2a")}`);
    // npm would look for a checkout's version in the registry, which does not have it.
    const named = Object.keys(taken).flatMap((name) => (name.startsWith("@parley/") ? [name.slice(8)] : []));
    for (const name of named) {
      const { dependencies: wanted = {} } = (await readJson(join(root, "packages", name, "package.json"))) as Manifest;
      const ours = Object.keys(wanted).filter((one) => one.startsWith("@parley/"));
      expect(Object.keys(taken), name).toEqual(expect.arrayContaining(ours));
    }
  });

  test("refuses a framework that it does not have, and makes no folder", async () => {
    const { code, out, err } = await init("other", "--with", "toString");
    expect({ code, out }).toEqual({ code: 2, out: "" });
    expect(err).toContain(`--with must be one of ${Object.keys(frameworks).join(", ")}; got "toString"`);
    expect(await readdir(folder)).not.toContain("other");
    const { out: help } = await init("--help");
    expect(help.replaceAll(/\s+/g, " ")).toContain(
      `framework of the agent: ${orList(Object.keys(frameworks))}; default: none`,
    );
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

  test("uses the versions of the tools that this project is tested with", async () => {
    const { devDependencies } = (await readJson(join(root, "package.json"))) as { devDependencies: object };
    expect(devDependencies).toMatchObject({ ...toolVersions, libsql: libsqlVersion });
  });
});

/** test/release/tarballs.test.ts installs, checks, tests, serves and asks it. */
describe("a new project", () => {
  let project = "";
  let made: { code: number; out: string };
  beforeAll(async () => {
    project = join(folder, "my-agent");
    made = await init("my-agent");
  });

  test("is announced with the next commands", () => {
    expect(made).toMatchObject({
      code: 0,
      out:
        "Created an agent in my-agent. Next:\n  cd my-agent\n  npm install\n  npm start\n" +
        'Then, in another terminal, from the same folder:\n  npm run ask -- "roll 2d6"\n',
    });
  });

  test("has the files of a project and nothing left to fill in", async () => {
    const files = (await readdir(project)).sort();
    expect(files).toEqual([".gitignore", "README.md", "agent.test.ts", "agent.ts", "package.json", "tsconfig.json"]);
    for (const file of files) expect(await readFile(join(project, file), "utf8")).not.toMatch(/\{\{|NAME/);
    expect(await readFile(join(project, "README.md"), "utf8")).toMatch(/^# my-agent\n/);
    expect(await readJson(join(project, "package.json"))).toMatchObject({
      name: "my-agent",
      scripts: {
        start: "parley serve agent.ts",
        dev: "parley dev agent.ts",
        ask: "parley send http://127.0.0.1:4000",
        test: "node --import tsx --test agent.test.ts",
        check: "tsc",
      },
    });
  });
});

/** test/release/tarballs.test.ts installs, checks, tests, serves and asks it. Its agents are tested in templates.test.ts. */
describe.each(Object.entries(frameworks))("a new project with %s", (name, { parley, dependencies, model, node }) => {
  test("has the framework in the tested version, its own files, and how to choose a real model", async () => {
    const { code, out } = await init(name, "--with", name, "--link", "checkout");
    expect(code).toBe(0);
    expect(out).toContain(`A scripted model answers. For a real one:\n  ${model} npm start\n`);
    const project = join(folder, name);
    const files = await readdir(project);
    const needed = [
      ".gitignore",
      "README.md",
      "agent.test.ts",
      "agent.ts",
      "model.ts",
      "package.json",
      "tsconfig.json",
    ];
    expect(files).toEqual(expect.arrayContaining(needed));
    for (const file of files) expect(await readFile(join(project, file), "utf8")).not.toMatch(/\{\{|NAME/);
    const readme = await readFile(join(project, "README.md"), "utf8");
    expect(readme).toMatch(new RegExp(`^# ${name}\\n`));
    expect(readme).toContain(`\n${model} npm start\n`);
    expect(readme).toContain("serves agent.ts on http://127.0.0.1:4000,");

    const { engines, dependencies: linked = {} } = (await readJson(join(project, "package.json"))) as Manifest;
    expect(engines).toEqual({ node: node ?? ">=20.19" });
    expect(linked).toMatchObject(dependencies);
    // The Claude Agent SDK is not in the workspace: test/interop has it.
    const claude = (await readJson(join(root, "test/interop/claude/package.json"))) as Manifest;
    const tested: Record<string, string> = { ...claude.dependencies };
    for (const each of parley) {
      const manifest = (await readJson(join(root, "packages", each, "package.json"))) as Manifest;
      const ours = Object.keys(manifest.dependencies ?? {}).filter((one) => one.startsWith("@parley/"));
      expect(Object.keys(linked)).toEqual(expect.arrayContaining([`@parley/${each}`, ...ours]));
      Object.assign(tested, manifest.dependencies, manifest.devDependencies);
    }
    expect(tested).toMatchObject(dependencies);
  });
});
