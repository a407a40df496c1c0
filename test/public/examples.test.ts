import { execFile } from "node:child_process";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, expect, test } from "vitest";
import { documentedOf } from "./docs.ts";
import { claude } from "../docs/claude-sdk.ts";
import { Declarations, entries, isValue } from "./entries.ts";

/**
 * Checks that the examples in TSDoc compile. Each example becomes a generator in its own module, which imports the public names that the
 * example uses, from the documented name's entry point if possible. `given` declares the other names that examples use.
 */
const given = `
import assert from "node:assert/strict";
import { describe, expect, it } from "vitest";
import type { Store, Turn } from "@parley/server";
import type { AgentService, CallContext, ServerBinding } from "@parley/a2a/protocol";
import type { BlobStore, Wakeup } from "@parley/server/store";
import type { PrivateCardKey } from "@parley/a2a/cards";
import type { Client, ClientBinding } from "@parley/a2a";
import type { Report } from "@parley/conform";
declare namespace Deno {
  interface ServeHandlerInfo {
    readonly remoteAddr: { readonly hostname: string };
  }
}
declare const agent: import("@parley/server").Agent;
declare const body: string;
declare const cardKey: PrivateCardKey;
declare const client: Client;
declare const weather: Client;
declare const flights: Client;
declare const hotels: Client;
declare const context: CallContext;
declare const error: unknown;
declare const next: AgentService;
declare const operation: never;
declare const part: { readonly url: string };
declare const report: Report;
declare const request: never;
declare const taskId: string;
declare const tokens: AsyncIterable<string>;
declare const turn: Turn;
declare function myStore(): Store;
declare function myWakeup(): Promise<Wakeup>;
declare function myBlobs(): BlobStore;
declare function myWatchedTask(): Promise<import("@parley/testing").WatchUnderTest>;
declare function webSocketBinding(): ClientBinding;
declare function webSocketServerBinding(): ServerBinding;
declare function redact<T>(value: T): T;
declare function stopJob(): Promise<void>;
`;

const folder = fileURLToPath(new URL(".", import.meta.url));
const tsc = fileURLToPath(new URL("../../node_modules/typescript/bin/tsc", import.meta.url));

const declarations = new Declarations();
const all = entries().map(({ name, file }) => ({ name, exported: declarations.exportsOf(file) }));

interface Example {
  readonly of: string;
  readonly code: string;
}

/** Returns each example once, because several entry points may export the same name. */
function examples(): ReadonlyMap<string, Example> {
  const found = new Map<string, Example>();
  for (const { name: entry, exported } of all) {
    for (const one of exported.values()) {
      for (const { name, doc = "" } of documentedOf(declarations, one)) {
        for (const code of codeIn(doc)) if (!found.has(code)) found.set(code, { of: `${name} of ${entry}`, code });
      }
    }
  }
  return found;
}

function codeIn(doc: string): readonly string[] {
  const text = doc.replaceAll(/^\s*\* ?/gm, "");
  return [...text.matchAll(/^```ts\n([\s\S]*?)^```$/gm)].map(([, code = ""]) => code);
}

/** Returns imports for the public names in a program, except for names that the program declares. */
function importsOf({ of, code }: Example, own: string): string {
  const places = [...all].sort(
    (one, other) => Number(of.endsWith(` ${other.name}`)) - Number(of.endsWith(` ${one.name}`)),
  );
  const here = new Set(`${given}\n${own}`.match(/(?<=const |function |[{,] |import )\w+/g));
  const used = [...new Set(code.match(/\b[A-Za-z]\w*\b/g))].filter((name) => !here.has(name));
  return used
    .flatMap((name) => {
      const place = places.find(({ exported }) => exported.has(name));
      const found = place?.exported.get(name);
      if (place === undefined || found === undefined) return [];
      return `import ${isValue(found) ? "" : "type "}{ ${name} } from "${place.name}";`;
    })
    .join("\n");
}

let project = "";
beforeAll(async () => {
  // The folder is below this one, so that the nearest node_modules has the packages, as for any program.
  project = await mkdtemp(join(folder, ".examples-"));
});
afterAll(() => rm(project, { recursive: true, force: true }));

test("the examples in TSDoc compile", async () => {
  const found = [...examples().values()];
  expect(found.length).toBeGreaterThan(20);
  await Promise.all(
    found.map(async (example, at) => {
      const imports = /^import .*;$/gm;
      const own = example.code.match(imports)?.join("\n") ?? "";
      const program = `export async function* example() {\n${example.code.replaceAll(imports, "")}\n}`;
      // If an example has its own imports, it gets none of the imports in `given`.
      const shared = given.split("\n").filter((line) => own === "" || !line.startsWith("import {"));
      const text = [`// ${example.of}`, ...shared, own, importsOf(example, own), program].join("\n");
      await writeFile(join(project, `example-${at}.ts`), text);
    }),
  );
  const options = {
    noEmit: true,
    strict: true,
    target: "es2022",
    module: "nodenext",
    types: ["node"],
    // test/types checks the declarations. A check of all frameworks' declarations here would take most of the time.
    skipLibCheck: true,
  };
  await writeFile(join(project, "claude.d.ts"), claude);
  await writeFile(join(project, "tsconfig.json"), JSON.stringify({ compilerOptions: options, include: ["*.ts"] }));
  await writeFile(join(project, "package.json"), JSON.stringify({ type: "module" }));
  const said = await new Promise<string>((done) => {
    execFile(process.execPath, [tsc, "-p", project, "--pretty", "false"], (_error, stdout) => done(stdout));
  });
  const named = said.replaceAll(/example-(\d+)\.ts/g, (_, at: string) => found[Number(at)]?.of ?? at);
  expect(named).toBe("");
});
