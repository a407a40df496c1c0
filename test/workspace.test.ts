import { execFileSync } from "node:child_process";
import { existsSync, readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import { alone, long, slow, slowest } from "./projects.ts";

const root = fileURLToPath(new URL("..", import.meta.url));

interface Manifest {
  readonly name: string;
  readonly version: string;
  readonly private?: boolean;
  readonly engines?: Readonly<Record<string, string>>;
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly peerDependencies?: Readonly<Record<string, string>>;
  readonly author?: string;
  readonly homepage?: string;
  readonly bugs?: object;
  readonly repository?: { readonly url: string };
  readonly keywords?: readonly string[];
}

interface Lockfile {
  readonly packages: Readonly<Record<string, { readonly optionalDependencies?: Readonly<Record<string, string>> }>>;
}

function manifestIn(folder: string): Manifest {
  return JSON.parse(readFileSync(join(root, folder, "package.json"), "utf8")) as Manifest;
}

const members = ["packages", "examples"].flatMap((folder) =>
  readdirSync(join(root, folder), { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => `${folder}/${name}`),
);
const published = members.filter((folder) => manifestIn(folder).private !== true);

describe("the workspace", () => {
  test("publishes its packages under one fixed version, except the extensions", () => {
    expect(published).toEqual([
      "packages/a2a",
      "packages/cli",
      "packages/conform",
      "packages/console",
      "packages/extensions",
      "packages/frameworks",
      "packages/grpc",
      "packages/mcp",
      "packages/nats",
      "packages/node",
      "packages/react",
      "packages/server",
      "packages/sql",
      "packages/telemetry",
      "packages/testing",
    ]);
    const config = JSON.parse(readFileSync(join(root, ".changeset/config.json"), "utf8")) as { fixed: string[][] };
    const [fixed = []] = config.fixed;
    const names = published.map((folder) => folder.replace("packages/", "@parley/"));
    expect(names.filter((name) => !fixed.includes(name))).toEqual(["@parley/extensions"]);
    expect(new Set(fixed.map((name) => manifestIn(name.replace("@parley/", "packages/")).version)).size).toBe(1);
  });

  test.each(members)("%s depends on that exact version of the others", (folder) => {
    const { dependencies, peerDependencies } = manifestIn(folder);
    const ours = Object.entries({ ...peerDependencies, ...dependencies }).filter(([name]) =>
      name.startsWith("@parley/"),
    );
    for (const [name, wanted] of ours)
      expect(wanted, name).toBe(manifestIn(name.replace("@parley/", "packages/")).version);
  });

  test.each(published)("%s declares what its users ask of a package", (folder) => {
    expect(manifestIn(folder)).toMatchObject({
      description: expect.any(String),
      license: "Apache-2.0",
      type: "module",
      engines: { node: ">=20.19" },
      files: expect.any(Array),
      // Published with provenance: the registry's statement of the source commit and the build environment.
      publishConfig: { access: "public", provenance: true },
    });
    const { keywords } = manifestIn(folder);
    expect(keywords).toEqual(expect.arrayContaining(["a2a", "agent2agent"]));
    expect([...new Set(keywords)].sort()).toEqual([...(keywords ?? [])].sort());
    expect(existsSync(join(root, folder, "README.md"))).toBe(true);
    expect(readFileSync(join(root, folder, "LICENSE"), "utf8")).toBe(readFileSync(join(root, "LICENSE"), "utf8"));
  });

  // npm and its provenance read the repository from here.
  test.each(published)(
    "%s names the repository, the pages and the authors that package.json of the root names",
    (folder) => {
      const { author, homepage, bugs, repository } = manifestIn(".");
      const page = repository?.url.replace(/^git\+(.*)\.git$/, "$1");
      expect({ author, homepage, bugs, repository }).toEqual({
        author: "The Parley authors",
        homepage: `${page}#readme`,
        bugs: { url: `${page}/issues` },
        repository: { type: "git", url: `git+${page}.git` },
      });
      expect(manifestIn(folder)).toMatchObject({
        author,
        homepage: `${page}/tree/main/${folder}#readme`,
        bugs,
        repository: { ...repository, directory: folder },
      });
    },
  );

  test.each([".", ...members])("%s pins what it installs", (folder) => {
    const manifest = manifestIn(folder) as Manifest & { devDependencies?: Record<string, string> };
    const loose = Object.entries({ ...manifest.dependencies, ...manifest.devDependencies }).filter(
      ([, version]) => !/^(npm:@?[\w/-]+@)?\d+\.\d+\.\d+(-[\w.]+)?$/.test(version),
    );
    expect(loose).toEqual([]);
  });

  // npm omits platforms that the current registry lacks, and then rejects its own lockfile elsewhere.
  test.each([
    "package-lock.json",
    "site/package-lock.json",
    "test/runtimes/package-lock.json",
    "test/nodes/package-lock.json",
    "test/postgres/package-lock.json",
    "test/ui/package-lock.json",
  ])("%s names each platform's packages", (file) => {
    const { packages } = JSON.parse(readFileSync(join(root, file), "utf8")) as Lockfile;
    const named = new Set(Object.keys(packages).map((path) => path.slice(path.lastIndexOf("node_modules/"))));
    const optional = Object.values(packages).flatMap(({ optionalDependencies = {} }) =>
      Object.keys(optionalDependencies),
    );
    expect(optional.filter((name) => !named.has(`node_modules/${name}`))).toEqual([]);
  });

  test.each([...new Set([...alone, ...slow, ...slowest])])("has %s, which test/projects.ts lists", (file) => {
    expect(existsSync(join(root, file))).toBe(true);
  });

  test("includes what takes its counts from test/counts.ts", () => {
    const counting = execFileSync("git", ["grep", "-lF", "counts.ts", "--", "*.test.ts"], {
      cwd: root,
      encoding: "utf8",
    });
    // Tests of a command that always runs at full length need no entry.
    const places = [...long.map((glob) => glob.replace(/\*\*.*$/, "")), "packages/sql/test/postgres/"];
    const missing = counting
      .trim()
      .split("\n")
      .filter((file) => !places.some((place) => file.startsWith(place)));
    expect(missing.filter((file) => file !== "test/workspace.test.ts")).toEqual([]);
  });
});
