import { execFile } from "node:child_process";
import { cp, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { startRegistry, type Registry } from "./registry.ts";

/** Tests the release script against a registry, in a small workspace with its own repository. */

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
  // A folder of its own, because npm writes its hidden lockfile there.
  await mkdir(join(workspace, "node_modules"));
  for (const name of await readdir(join(root, "node_modules")))
    if (!name.startsWith(".") || name === ".bin")
      await symlink(join(root, "node_modules", name), join(workspace, "node_modules", name));
  await write("package.json", {
    name: "w",
    private: true,
    type: "module",
    workspaces: ["packages/*"],
    scripts: { build: "node -e 0" },
  });
  await write("package-lock.json", {});
  await write(".gitignore", "node_modules\nnode_modules/\n");
  await write(".changeset/config.json", { access: "public", baseBranch: "main" });
  // Alphabetically, this package comes first, but it depends on the two others.
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
    // npm can create provenance only in the hosted CI.
    publishConfig: { access: "public", provenance: false },
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
  exec(process.execPath, ["scripts/release.mjs", ...args], { ...registry.env, npm_config_fetch_retries: "0" });

const ids = ["@parley/all@0.1.0", "@parley/core@0.1.0", "@parley/host@0.1.0"];

describe("npm run release -- --dry-run", () => {
  test("checks every package, and publishes nothing", async () => {
    const { code, out, err } = await release("--dry-run");
    expect({ code, err }).toEqual({ code: 0, err: "" });
    expect(out).toMatch(/^(@parley\/(core|host|all) 0\.1\.0: 0\.\d kB, 4 files\n){3}$/);
    expect(registry.published).toEqual([]);
    expect(await git("tag")).toBe("");
  });

  test("prints why a release would be rejected", async () => {
    await write(".changeset/new.md", "---\n---\n");
    await git("tag", "v0.1.0");
    await git("checkout", "-q", "-b", "side");
    await commit();
    await write("left.txt", "");
    const problems = [
      "releases are made on main; got side",
      "git status lists uncommitted changes; commit them",
      expect.stringMatching(/^v0\.1\.0 tags commit [0-9a-f]{12}; run npm run version$/),
      "1 changesets are pending; run npm run version",
    ];
    const { code, out } = await release("--dry-run");
    expect(code).toBe(0);
    expect(out.match(/(?<=^A release would be refused: ).*$/gm)).toEqual(problems);
    const real = await release();
    expect(real).toMatchObject({ code: 1, out: "" });
    expect(real.err.match(/(?<=^- ).*$/gm)).toEqual(problems);
    expect(registry.published).toEqual([]);
  });

  test("rejects a tarball that its users could not use", async () => {
    await rm(join(workspace, "packages/host/dist/index.d.ts"));
    const { code, err } = await release("--dry-run");
    expect(code).toBe(1);
    expect(err).toMatch(/^@parley\/host is not fit to publish:\n[^]*index\.d\.ts\S* but the file does not exist/);
  });

  test("rejects built files whose source was deleted", async () => {
    await write("packages/core/src/index.ts", "export const one = 1;\n");
    await write("packages/core/dist/old.js", "export const old = 1;\n");
    const { code, err } = await release("--dry-run");
    expect(code).toBe(1);
    expect(err).toContain("dist/old.js has no source; delete dist and build again");
  });
});

describe("npm run release", () => {
  test("publishes and tags, continues after a failure, and publishes nothing twice", async () => {
    registry.breakAt("@parley/host");
    const broken = await release();
    expect(broken.code).toBe(1);
    expect(broken.err).toMatch(/^Publishing failed; run the release again to continue:\n[^]*500/);
    expect(registry.published.toSorted()).toEqual(ids.slice(0, 2));
    expect(await git("tag")).toBe("");

    registry.breakAt();
    const again = await release();
    expect({ code: again.code, err: again.err }).toEqual({ code: 0, err: "" });
    expect(again.out).toContain("Published and tagged v0.1.0. Push it: git push origin v0.1.0\n");
    expect(registry.published.toSorted()).toEqual(ids);
    expect(registry.manifest("@parley/core@0.1.0")).toMatchObject({ repository: { directory: "packages/core" } });
    expect(await git("rev-parse", "v0.1.0^{commit}")).toBe(await git("rev-parse", "HEAD"));

    expect(await release()).toMatchObject({ code: 0, err: "" });
    expect(registry.published).toHaveLength(3);
  });

  test("publishes nothing while the registry is down", async () => {
    await registry.stop();
    const { code, err } = await release();
    expect(code).toBe(1);
    expect(err).toMatch(/^Publishing failed/);
    expect(await git("tag")).toBe("");
  });
});

test("npm run version keeps the version of a peer exact, and writes the changelogs", async () => {
  const config = JSON.parse(await readFile(join(root, ".changeset/config.json"), "utf8")) as object;
  await write(".changeset/config.json", { ...config, fixed: [["@parley/*"]] });
  await write(".changeset/new.md", '---\n"@parley/core": minor\n---\n\nSomething new.\n');
  await commit();
  const { code, err } = await exec(process.execPath, ["scripts/version.mjs"], registry.env);
  expect({ code, err }).toEqual({ code: 0, err: "" });
  const read = (file: string): Promise<string> => readFile(join(workspace, file), "utf8");
  expect(JSON.parse(await read("packages/all/package.json"))).toMatchObject({
    version: "0.2.0",
    dependencies: { "@parley/host": "0.2.0" },
    peerDependencies: { "@parley/core": "0.2.0" },
  });
  expect(await read("packages/core/CHANGELOG.md")).toMatch(/^## 0\.2\.0\n\n### Minor Changes\n\n- .*Something new\.$/m);
});

test("prints its options, and rejects others", async () => {
  expect(await release("--help")).toMatchObject({ code: 0, err: "", out: expect.stringContaining("--dry-run") });
  const { code, out, err } = await release("--publish");
  expect({ code, out }).toEqual({ code: 2, out: "" });
  expect(err).toContain("Unknown option '--publish'");
});
