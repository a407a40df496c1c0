import { execFile } from "node:child_process";
import { cp, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { startRegistry, type Registry } from "./registry.ts";

/** The script of a release, in a small workspace with a repository of its own, against a registry. */

const root = join(import.meta.dirname, "../..");
const remote = "git@github.com:parley-a2a/parley.git";
const repository = { type: "git", url: "git+https://github.com/parley-a2a/parley.git" };

interface Finished {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

let workspace = "";
let registry: Registry;
beforeEach(async () => {
  registry = await startRegistry();
  workspace = await mkdtemp(join(tmpdir(), "parley-release-test-"));
  await cp(join(root, "scripts"), join(workspace, "scripts"), { recursive: true });
  await symlink(join(root, "node_modules"), join(workspace, "node_modules"));
  await write("package.json", { name: "w", private: true, type: "module", scripts: { build: "node -e 0" } });
  await write("CHANGELOG.md", "# Changelog\n\n## 0.1.0\n\nThe first.\n");
  await write(".gitignore", "node_modules\nnode_modules/\n");
  await write(".changeset/config.json", {});
  // Its name comes first, and it needs both others.
  await addPackage("all", { dependencies: { "@parley/host": "0.1.0" }, peerDependencies: { "@parley/core": "0.1.0" } });
  await addPackage("core");
  await addPackage("host", { dependencies: { "@parley/core": "0.1.0" } });
  await git("init", "-q", "-b", "main");
  await git("remote", "add", "origin", remote);
  await commit();
});
afterEach(async () => {
  await registry.close();
  await rm(workspace, { recursive: true });
});

async function write(file: string, content: string | object): Promise<void> {
  const path = join(workspace, file);
  await mkdir(join(path, ".."), { recursive: true });
  await writeFile(path, typeof content === "string" ? content : `${JSON.stringify(content, null, 2)}\n`);
}

async function addPackage(name: string, more: object = {}): Promise<void> {
  const entry = { types: "./dist/index.d.ts", default: "./dist/index.js" };
  await write(`packages/${name}/package.json`, {
    name: `@parley/${name}`,
    version: "0.1.0",
    license: "Apache-2.0",
    type: "module",
    repository: { ...repository, directory: `packages/${name}` },
    publishConfig: { access: "public", provenance: true },
    engines: { node: ">=20.19" },
    files: ["dist"],
    exports: { ".": entry, "./package.json": "./package.json" },
    ...more,
  });
  await write(`packages/${name}/README.md`, `# ${name}\n`);
  await write(`packages/${name}/dist/index.js`, "export const one = 1;\n");
  await write(`packages/${name}/dist/index.d.ts`, "export declare const one: number;\n");
}

function exec(file: string, args: readonly string[], env: NodeJS.ProcessEnv = {}): Promise<Finished> {
  return new Promise((done) => {
    execFile(file, args, { cwd: workspace, env: { ...process.env, ...env } }, (error, out, err) =>
      done({ code: error === null ? 0 : Number(error.code), out, err }),
    );
  });
}

async function git(...args: string[]): Promise<string> {
  const who = ["-c", "user.name=Test", "-c", "user.email=test@example.com"];
  const { code, out, err } = await exec("git", [...who, ...args]);
  expect({ code, err: code === 0 ? "" : err }).toEqual({ code: 0, err: "" });
  return out.trim();
}

async function commit(): Promise<void> {
  await git("add", "-A");
  await git("commit", "-q", "-m", "A state");
}

const release = (...args: string[]): Promise<Finished> =>
  exec(process.execPath, ["scripts/release.mjs", ...args], {
    ...registry.env,
    ACTIONS_ID_TOKEN_REQUEST_URL: "",
    npm_config_fetch_retries: "0",
  });

const ids = ["@parley/core@0.1.0", "@parley/host@0.1.0", "@parley/all@0.1.0"];

describe("npm run release -- --dry-run", () => {
  test("packs every package into a folder, tells what is in it, and publishes nothing", async () => {
    const { code, out, err } = await release("--dry-run", "--no-provenance", "--out", "tarballs");
    expect({ code, err }).toEqual({ code: 0, err: "" });
    expect(out).toMatch(/^package +version +size +files\n/);
    for (const name of ["core", "host", "all"])
      expect(out).toMatch(new RegExp(`^@parley/${name} +0\\.1\\.0 +0\\.\\d kB +4$`, "m"));
    expect(out).toContain(`The tarballs are in ${join(workspace, "tarballs")}\nReady to be published.\n`);
    expect((await readdir(join(workspace, "tarballs"))).sort()).toEqual(
      ["all", "core", "host"].map((name) => `parley-${name}-0.1.0.tgz`),
    );
    expect(registry.published).toEqual([]);
    expect(await git("tag")).toBe("");
  });

  test("says what a release would be refused for, each with what to do, and goes on", async () => {
    await write(".changeset/new.md", "---\n---\n");
    await write(
      "packages/core/package.json",
      (await readFile(join(workspace, "packages/core/package.json"), "utf8")).replace('"0.1.0"', '"0.0.9"'),
    );
    await git("checkout", "-q", "-b", "side");
    await git("remote", "set-url", "origin", "https://token-of-a-build@github.com/somebody/fork.git");
    await git("tag", "v0.0.9");
    await commit();
    await write("left.txt", "");
    const { code, out } = await release("--dry-run");
    expect(code).toBe(0);
    const said = out.match(/^A release would be refused: .*$/gm)?.map((line) => line.slice(28)) ?? [];
    expect(said).toEqual([
      "releases are made on main, and this is side",
      "there are changes that are not committed: git status lists them",
      expect.stringMatching(/^the tag v0\.0\.9 is another commit, [0-9a-f]{12}: is the version new\?$/),
      "1 changesets are waiting: npm run version",
      "the versions differ: @parley/core 0.0.9, @parley/host 0.1.0, @parley/all 0.1.0",
      "@parley/host needs @parley/core 0.1.0, and not 0.0.9: npm run version",
      "@parley/all needs @parley/core 0.1.0, and not 0.0.9: npm run version",
      'CHANGELOG.md has no entry "## 0.0.9": npm run version',
      ...["core", "host", "all"].map(
        (name) =>
          `@parley/${name} says that its repository is git+https://github.com/parley-a2a/parley.git, and origin is https://github.com/somebody/fork.git`,
      ),
      expect.stringContaining("provenance needs a build that the registry can check"),
    ]);
    expect(out).not.toContain("token-of-a-build");
    const real = await release();
    expect(real).toMatchObject({ code: 1, out: "" });
    expect(real.err).toMatch(/^Nothing is published:\n- releases are made on main/);
    expect(registry.published).toEqual([]);
  });

  test("refuses a tarball that its users could not use", async () => {
    await rm(join(workspace, "packages/host/dist/index.d.ts"));
    const { code, err } = await release("--dry-run");
    expect(code).toBe(1);
    expect(err).toMatch(
      /^@parley\/host must not be published as it is:\n[^]*index\.d\.ts\S* but the file does not exist/,
    );
  });

  test("refuses what was built from a source that is gone", async () => {
    await write("packages/core/src/index.ts", "export const one = 1;\n");
    await write("packages/core/dist/old.js", "export const old = 1;\n");
    const { code, err } = await release("--dry-run");
    expect(code).toBe(1);
    expect(err).toContain("dist/old.js has no source any more: delete the folder dist, and build");
  });
});

describe("npm run release", () => {
  test("publishes in the order of the dependencies, tags, goes on after a failure, and does nothing twice", async () => {
    registry.breakAt("@parley/host");
    const broken = await release("--no-provenance");
    expect(broken.code).toBe(1);
    expect(broken.err).toMatch(
      /^@parley\/host@0\.1\.0 was not published\. Run the release again to go on here:\n[^]*500/,
    );
    expect(registry.published).toEqual(ids.slice(0, 1));
    expect(await git("tag")).toBe("");

    registry.breakAt();
    const again = await release("--no-provenance");
    expect({ code: again.code, err: again.err }).toEqual({ code: 0, err: "" });
    expect(again.out).toContain(
      "@parley/core@0.1.0 is published already\n@parley/host@0.1.0 is published\n@parley/all@0.1.0 is published\n" +
        "Tagged v0.1.0. Push it: git push origin v0.1.0\n",
    );
    expect(registry.published).toEqual(ids);
    expect(registry.manifest("@parley/core@0.1.0")).toMatchObject({ repository: { directory: "packages/core" } });
    expect(await git("rev-parse", "v0.1.0^{commit}")).toBe(await git("rev-parse", "HEAD"));

    const third = await release("--no-provenance");
    expect(third.out.match(/is published already$/gm)).toHaveLength(3);
  });

  test("publishes nothing where the registry cannot be asked", async () => {
    await registry.stop();
    const { code, err } = await release("--no-provenance");
    expect(code).toBe(1);
    expect(err).toMatch(/^The registry cannot be asked for @parley\/core@0\.1\.0:\n/);
  });
});

test("explains its options, and knows no others", async () => {
  expect(await release("--help")).toMatchObject({ code: 0, err: "", out: expect.stringContaining("--dry-run") });
  const { code, out, err } = await release("--publish");
  expect({ code, out }).toEqual({ code: 2, out: "" });
  expect(err).toContain("Unknown option '--publish'");
});
