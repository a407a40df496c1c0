import { spawnSync } from "node:child_process";
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  readdirSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { parseSync, Visitor } from "oxc-parser";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { packages, rooms, violation } from "../scripts/layers.mjs";

const root = fileURLToPath(new URL("..", import.meta.url));

/** Every module that a source imports, including types and `import()`. */
function importsOf(path: string, source: string): string[] {
  const { program, errors } = parseSync(path, source);
  expect(errors, path).toEqual([]);
  const found: string[] = [];
  const add = (node: { source?: unknown }): void => {
    const named = node.source as { value?: unknown } | null | undefined;
    if (typeof named?.value === "string") found.push(named.value);
  };
  new Visitor({
    ImportDeclaration: add,
    ExportNamedDeclaration: add,
    ExportAllDeclaration: add,
    ImportExpression: add,
    TSImportType: add,
  }).visit(program);
  return found;
}

/** The violations in the imports of one file, one sentence each. */
function violationsIn(path: string, source: string): string[] {
  return importsOf(path, source)
    .map((specifier) => violation(path, specifier))
    .filter((problem) => problem !== undefined)
    .map((problem) => `${relative(root, path)}: ${problem}`);
}

function sourcesOf(name: string): string[] {
  const src = join(root, "packages", name, "src");
  return readdirSync(src, { recursive: true, encoding: "utf8" })
    .filter((path) => /\.[cm]?[jt]s$/.test(path))
    .map((path) => join(src, path));
}

/** Sources that violate the table, each in a different way, with the expected message. */
const planted: readonly { path: string; source: string; says: string }[] = [
  { path: "a2a/src/model/planted.ts", source: 'import "../net/index.ts";', says: "model may not import net" },
  {
    path: "a2a/src/transport/rest/planted.ts",
    source: 'import type { V1 } from "../../wire/v1/index.ts";\nexport type A = V1;',
    says: "transport/rest may not import wire/v1",
  },
  {
    path: "a2a/src/transport/router/planted.ts",
    source: 'import { restBinding } from "../rest/handler.ts";\nexport const known = restBinding;',
    says: "transport/router may not import transport/rest",
  },
  {
    path: "a2a/src/transport/server/planted.ts",
    source: 'import "../router/router.ts";',
    says: "transport/server may not import transport/router",
  },
  {
    path: "server/src/engine/planted.ts",
    source: 'export type { ConnectOptions } from "@parley/a2a/internal/client/connect";',
    says: "engine may not import client",
  },
  {
    path: "server/src/engine/log/planted.ts",
    source: 'export type { Run } from "../run/run.ts";',
    says: "engine/log may not import engine/run",
  },
  {
    path: "server/src/engine/run/planted.ts",
    source: 'import "../engine.ts";',
    says: "engine/run may not import engine",
  },
  {
    path: "server/src/limits/planted.ts",
    source: 'import "../engine/log/committer.ts";',
    says: "limits may not import engine/log",
  },
  {
    path: "testing/src/planted.ts",
    source: 'import "@parley/server/internal/engine/log/committer";',
    says: "packages/testing may not import engine/log",
  },
  {
    path: "server/src/store/planted.ts",
    source: 'export const net = (): Promise<unknown> => import("@parley/a2a/internal/net/index");',
    says: "store may not import net",
  },
  {
    path: "a2a/src/base/planted.ts",
    source: 'export type Task = import("../model/index.ts").Task;',
    says: "base may not import model",
  },
  {
    path: "a2a/src/client/planted.ts",
    source: 'export * from "../wire/v1/index.ts";',
    says: "client may not import wire/v1",
  },
  { path: "a2a/src/wire/v1/planted.ts", source: 'import "../v03/index.ts";', says: "wire/v1 may not import wire/v03" },
  {
    path: "server/src/agent/planted.ts",
    source: 'import "../handler.ts";',
    says: "handler.ts is composition: rooms never import it",
  },
  {
    path: "server/src/agent/planted.ts",
    source: 'export type { Task } from "@parley/a2a";',
    says: "rooms import rooms: @parley/a2a/internal/ and a file",
  },
  {
    path: "extensions/src/timestamp/planted.ts",
    source: 'import "../x402/index.ts";',
    says: "timestamp may not import x402",
  },
  {
    path: "extensions/src/timestamp/planted.ts",
    source: 'import "@parley/server/internal/agent/index";',
    says: "timestamp may not import agent",
  },
  { path: "a2a/src/odd/planted.ts", source: 'import "../base/index.ts";', says: "odd/planted.ts has no row" },
  {
    path: "a2a/src/index.ts",
    source: 'export * from "./wire/v1/index.ts";',
    says: "index.ts may not import wire/v1",
  },
  { path: "a2a/src/net/planted.ts", source: 'import "node:dns";', says: "packages/a2a runs everywhere: no node:dns" },
  { path: "a2a/src/net/planted.ts", source: 'import "dns";', says: "packages/a2a runs everywhere: no dns" },
  { path: "a2a/src/net/planted.ts", source: 'import "express";', says: "express is not a dependency of packages/a2a" },
  {
    path: "a2a/src/net/planted.ts",
    source: 'import "@parley/server";',
    says: "packages/a2a may not import @parley/server",
  },
  {
    path: "server/src/page/planted.ts",
    source: 'import "@parley/extensions/x402";',
    says: "packages/server may not import @parley/extensions",
  },
  { path: "sql/src/planted.ts", source: 'import "@parley/node";', says: "packages/sql may not import @parley/node" },
  { path: "node/src/planted.ts", source: 'import "@parley/cli";', says: "packages/node may not import @parley/cli" },
  { path: "node/src/planted.ts", source: 'import "fs";', says: "write node:fs" },
  {
    path: "cli/src/planted.ts",
    source: 'import "../../node/src/index.ts";',
    says: "a relative import may not leave its package's src",
  },
];

describe("the import table", () => {
  test.each(Object.keys(packages))("holds in packages/%s", (name) => {
    const sources = sourcesOf(name);
    expect(sources.length).toBeGreaterThan(0);
    expect(sources.flatMap((path) => violationsIn(path, readFileSync(path, "utf8")))).toEqual([]);
  });

  test.each(planted)("fails on a planted violation: $says ($path)", ({ path, source, says }) => {
    expect(violationsIn(join(root, "packages", path), source)).toEqual([expect.stringContaining(says)]);
  });

  test("lets only one file name versions of the wire", () => {
    const files = Object.keys(rooms).flatMap((name) =>
      readdirSync(join(root, "packages", name, "src"))
        .filter((path) => path.endsWith(".ts"))
        .map((path) => `${name}/src/${path}`),
    );
    const asked = [...files, "a2a/src/client/connect.ts", "server/src/engine/engine.ts", "testing/src/in-process.ts"];
    const naming = asked.filter((path) => {
      const wire = join(root, "packages/a2a/src/wire/v1/index.ts");
      const own = `./${relative(join(root, "packages", path, ".."), wire)}`;
      const specifier = path.startsWith("a2a/") ? own : "@parley/a2a/internal/wire/v1/index";
      return violation(join(root, "packages", path), specifier) === undefined;
    });
    expect(naming).toEqual(["a2a/src/wires.ts"]);
  });

  test("has a row for every existing room and package", () => {
    for (const [name, own] of Object.entries(rooms)) {
      const entries = readdirSync(join(root, "packages", name, "src"), { withFileTypes: true });
      const folders = entries.filter((entry) => entry.isDirectory()).map((entry) => entry.name);
      const told = Object.keys(own).map((room) => room.split("/")[0] ?? "");
      expect(folders.toSorted(), name).toEqual([...new Set(told)].toSorted());
    }
    const present = readdirSync(join(root, "packages"), { withFileTypes: true }).filter((entry) => entry.isDirectory());
    expect(present.map((entry) => entry.name).filter((name) => !Object.hasOwn(packages, name))).toEqual([]);
  });

  test("has no duplicate names, and only names of rooms that a package may import", () => {
    const names = Object.values(rooms).flatMap((own) => Object.keys(own));
    expect(names.filter((name, at) => names.indexOf(name) !== at)).toEqual([]);
    for (const [name, own] of Object.entries(rooms)) {
      const reached = [name, ...(packages[name]?.imports ?? [])].flatMap((each) => Object.keys(rooms[each] ?? {}));
      for (const imports of Object.values(own)) expect(reached, name).toEqual(expect.arrayContaining([...imports]));
    }
  });

  test("has no cycle, of packages or of rooms", () => {
    const ofPackages = Object.entries(packages).map(([name, { imports }]) => [name, imports] as const);
    expect(circle(new Map(ofPackages))).toBeUndefined();
    expect(circle(new Map(Object.values(rooms).flatMap((own) => Object.entries(own))))).toBeUndefined();
    expect(circle(new Map([["one", ["other"]], ["other", ["one"]]]))).toEqual(["one", "other", "one"]); // prettier-ignore
  });
});

/** A cycle in the graph, if there is one. */
function circle(graph: ReadonlyMap<string, readonly string[]>): readonly string[] | undefined {
  const done = new Set<string>();
  const from = (node: string, way: readonly string[]): readonly string[] | undefined => {
    if (way.includes(node)) return [...way.slice(way.indexOf(node)), node];
    if (done.has(node)) return undefined;
    for (const next of graph.get(node) ?? []) {
      const found = from(next, [...way, node]);
      if (found !== undefined) return found;
    }
    done.add(node);
    return undefined;
  };
  for (const node of graph.keys()) {
    const found = from(node, []);
    if (found !== undefined) return found;
  }
  return undefined;
}

/** The rows of the tables of docs/architecture.md under a heading: a name, and what it may import. */
function told(heading: string): Record<string, readonly (string | undefined)[]> {
  const page = readFileSync(join(root, "docs/architecture.md"), "utf8")
    .split(`\n## ${heading}\n`)[1]
    ?.split("\n## ")[0];
  const rows = [...(page ?? "").matchAll(/^\| `([@\w/-]+)` +\|(?: .*\|)? (.*?) +\|$/gm)];
  return Object.fromEntries(
    rows.map(([, name = "", others = ""]) => [name, [...others.matchAll(/`([@\w/-]+)`/g)].map(([, other]) => other)]),
  );
}

test("equals the tables of docs/architecture.md", () => {
  expect(told("Who may import what")).toEqual(
    Object.fromEntries(Object.values(rooms).flatMap((own) => Object.entries(own))),
  );
  const named = Object.entries(packages).map(([name, { imports }]) => [
    `@parley/${name}`,
    imports.map((one) => `@parley/${one}`),
  ]);
  expect(told("Packages")).toEqual(Object.fromEntries(named));
});

test("docs/architecture.md names existing files", () => {
  const page = readFileSync(join(root, "docs/architecture.md"), "utf8");
  const named = [...page.matchAll(/(?<![\w@/.-])((?:[a-z][\w-]*\/)+)(?:[\w-]+\.ts)?(?![\w/])/g)].map(([path]) => path);
  const packagesOf = new Map(
    Object.entries(rooms).flatMap(([name, own]) => Object.keys(own).map((room) => [room.split("/")[0], name] as const)),
  );
  const known = named.filter((path) => packagesOf.has(path.split("/")[0]) || path.startsWith("node/"));
  expect(known.length).toBeGreaterThan(20);
  const missing = known.filter((path) => {
    const name = packagesOf.get(path.split("/")[0]) ?? "";
    const place = path.startsWith("node/")
      ? path.replace("node/", "packages/node/src/")
      : `packages/${name}/src/${path}`;
    return !existsSync(join(root, place));
  });
  expect(missing).toEqual([]);
});

describe("the lint rule", () => {
  let copy: string;

  beforeAll(() => {
    copy = mkdtempSync(join(tmpdir(), "parley-layering-"));
    for (const path of [
      ".oxlintrc.json",
      "package.json",
      "scripts",
      "tsconfig.json",
      "tsconfig.base.json",
      "tsconfig.test.json",
    ]) {
      cpSync(join(root, path), join(copy, path), { recursive: true });
    }
    symlinkSync(join(root, "node_modules"), join(copy, "node_modules"), "junction");
    for (const name of Object.keys(packages)) {
      const folder = join(copy, "packages", name);
      mkdirSync(folder, { recursive: true });
      for (const file of ["package.json", "tsconfig.json"])
        cpSync(join(root, "packages", name, file), join(folder, file));
    }
    planted.forEach(({ path, source }, index) => {
      const file = join(copy, "packages", numbered(path, index));
      mkdirSync(join(file, ".."), { recursive: true });
      writeFileSync(file, `${source}\n`);
    });
  });

  afterAll(() => rmSync(copy, { recursive: true, force: true }));

  /** Some planted files share a path, so a number distinguishes them. Composition is identified by its name, and keeps it. */
  function numbered(path: string, index: number): string {
    return path.replace("planted.ts", `planted-${index}.ts`);
  }

  test("fails on each planted violation", () => {
    const oxlint = join(root, "node_modules", "oxlint", "bin", "oxlint");
    const run = spawnSync(process.execPath, [oxlint, "--format=json"], { cwd: copy, encoding: "utf8" });
    expect(run.status, run.stderr).toBe(1);
    const report = JSON.parse(run.stdout) as { diagnostics: { code: string; filename: string; message: string }[] };
    const said = report.diagnostics
      .filter(({ code }) => code === "parley(layering)")
      .map(({ filename, message }) => `${filename.replaceAll("\\", "/")}: ${message}`);
    const wanted = planted.map(({ path, says }, index) =>
      expect.stringContaining(
        `packages/${numbered(path, index)}: ${says.replace("planted.ts", `planted-${index}.ts`)}`,
      ),
    );
    expect(said.toSorted()).toEqual(expect.arrayContaining(wanted));
    expect(said).toHaveLength(planted.length);
  });
});
