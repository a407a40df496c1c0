import { execFile } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { Declarations, entries, isValue } from "../public/entries.ts";
import { claude } from "./claude-sdk.ts";
import { allPages, root } from "./pages.ts";

/**
 * Checks that `ts` blocks without a role, which are parts of programs, compile. Public names are imported, and `given` declares the names that
 * all pages use in the same way. A comment before a block, hidden from readers, declares its other names:
 * `<!-- given: const rows: AsyncIterable<string> -->`.
 */
const given = `
import assert from "node:assert/strict";
import { describe, expect, it } from "vitest";
import type { Agent } from "@parley/server";
import type { AgentDescription, Handler, Turn } from "@parley/server";
import type { Authenticator } from "@parley/a2a/auth";
import type { Client } from "@parley/a2a";
import type { ServeOptions, Server } from "@parley/node";
declare const agent: Agent;
declare const authenticator: Authenticator;
declare const client: Client;
declare const description: AgentDescription;
declare const handler: Handler;
declare const options: ServeOptions;
declare const server: Server;
declare const taskId: string;
declare const token: string;
declare const turn: Turn;
declare const url: string;
`;

interface Fragment {
  readonly place: string;
  readonly code: string;
  readonly given: string;
}

const fence = /(?:^<!-- given:\s([\s\S]*?)\s-->\n+)?(?:^<!-- prettier-ignore -->\n)?^```ts\n([\s\S]*?)^```$/gm;

async function fragments(): Promise<readonly Fragment[]> {
  const found = await Promise.all(
    allPages().map(async (page) => {
      const text = await readFile(join(root, page), "utf8");
      return [...text.matchAll(fence)].map(({ index, 1: own = "", 2: code = "" }) => ({
        place: `${page}:${text.slice(0, index).split("\n").length}`,
        code,
        given: own.replaceAll(/(?<=^|;\s*)(?=(?:const|function|let) )/g, "declare "),
      }));
    }),
  );
  return found.flat();
}

const declarations = new Declarations();
const all = entries().map(({ name, file }) => ({ name, exported: declarations.exportsOf(file) }));

/** Returns the names that a text declares or imports. */
function declaredBy(text: string): ReadonlySet<string> {
  const imported = [...text.matchAll(/import (?:type )?(?:(\w+)|\{([^}]*)\})/g)].flatMap(([, one = "", list = ""]) =>
    [one, ...list.split(",")].map((name) => name.trim().replace(/^type |^.* as /g, "")),
  );
  const declared = text.match(/(?<=\b(?:const|function|interface|type|class|let) )\w+/g) ?? [];
  return new Set([...imported, ...declared].filter((name) => name !== ""));
}

/** Returns imports for the public names in a fragment. */
function importsOf(code: string, known: ReadonlySet<string>): string {
  const used = [...new Set(code.match(/\b[A-Za-z]\w*\b/g))].filter((name) => !known.has(name));
  return used
    .flatMap((name) => {
      const place = all.find(({ exported }) => exported.has(name));
      const found = place?.exported.get(name);
      if (place === undefined || found === undefined) return [];
      return `import ${isValue(found) ? "" : "type "}{ ${name} } from "${place.name}";`;
    })
    .join("\n");
}

/** Returns a fragment as a separate module. Its own declarations take precedence over the given ones. */
function moduleOf(fragment: Fragment): string {
  const imports = /^import [\s\S]*?;$/gm;
  const own = fragment.code.match(imports)?.join("\n") ?? "";
  const code = fragment.code.replaceAll(imports, "").replaceAll(/^export /gm, "");
  const declared = declaredBy(`${own}\n${fragment.given}\n${code}`);
  const shared = given.split("\n").filter((line) => {
    const names = [...declaredBy(line)];
    return !names.some((name) => declaredBy(`${own}\n${fragment.given}`).has(name));
  });
  const known = new Set([...declared, ...declaredBy(shared.join("\n"))]);
  const program = `export async function* fragment() {\n${code}\n}`;
  return [...shared, own, importsOf(`${fragment.code}\n${fragment.given}`, known), fragment.given, program].join("\n");
}

const options = {
  noEmit: true,
  strict: true,
  target: "es2022",
  module: "nodenext",
  types: ["node"],
  allowImportingTsExtensions: true,
};

test("parts of programs compile", async () => {
  const found = await fragments();
  expect(found.length).toBeGreaterThan(10);
  // The folder is below this one, so that the nearest node_modules has the packages, as for any program.
  const project = await mkdtemp(join(import.meta.dirname, ".fragments-"));
  onTestFinished(() => rm(project, { recursive: true, force: true }));
  await Promise.all(found.map((fragment, at) => writeFile(join(project, `fragment-${at}.ts`), moduleOf(fragment))));
  await writeFile(join(project, "claude.d.ts"), claude);
  await writeFile(join(project, "tsconfig.json"), JSON.stringify({ compilerOptions: options, include: ["*.ts"] }));
  await writeFile(join(project, "package.json"), JSON.stringify({ type: "module" }));
  const tsc = join(root, "node_modules/typescript/bin/tsc");
  const said = await new Promise<string>((done) => {
    execFile(process.execPath, [tsc, "-p", project, "--pretty", "false"], (_error, stdout) => done(stdout));
  });
  // Ignores errors in the declarations of Temporal, which use `ms` and `source-map` without depending on their types, and of Mastra, which name
  // files and types that it does not publish.
  const ours = said.replaceAll(/^node_modules\/@(?:temporalio|mastra)\/.*\n(?: .*\n)*/gm, "");
  const named = ours.replaceAll(/\S*fragment-(\d+)\.ts/g, (_, at: string) => found[Number(at)]?.place ?? at);
  expect(named).toBe("");
});
