import { execFile } from "node:child_process";
import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { build } from "esbuild";
import { afterAll, beforeAll, expect, test } from "vitest";
import type * as aiSDK from "../src/ai-sdk/index.ts";
import { installedVersion } from "../src/shared/peer.ts";

/* Adapters in a project with an unsupported version of their framework. */

let folder = "";
beforeAll(async () => {
  // Outside of the repository, so that it does not find the repository's packages.
  folder = await mkdtemp(join(tmpdir(), "parley-peer-"));
});
afterAll(() => rm(folder, { recursive: true }));

/** An adapter next to a package without the exports that it uses. */
async function adapterWith(adapter: string, name: string, version: string): Promise<string> {
  const project = join(folder, adapter, version);
  const installed = join(project, "node_modules", ...name.split("/"));
  await mkdir(installed, { recursive: true });
  const exports = { ".": "./index.js", "./package.json": "./package.json" };
  await writeFile(join(installed, "package.json"), JSON.stringify({ name, version, type: "module", exports }));
  await writeFile(join(installed, "index.js"), "export const other = () => {};");
  const outfile = join(project, "adapter.mjs");
  const entry = fileURLToPath(new URL(`../src/${adapter}/index.ts`, import.meta.url));
  const banner = { js: 'import { createRequire } from "node:module"; const require = createRequire(import.meta.url);' };
  const conditions = ["@parley/source", "import"];
  const options = { bundle: true, format: "esm", platform: "node", banner, logLevel: "error" } as const;
  await build({ ...options, external: [name], conditions, entryPoints: [entry], outfile });
  return outfile;
}

test.each(["5.0.1", "4.3.19", "8.0.0", "9.1.0-beta.2"])(
  "rejects ai %s at start, with the supported range",
  async (version) => {
    const { href } = pathToFileURL(await adapterWith("ai-sdk", "ai", version));
    const { fromAISDK, remoteAgent, a2aTool } = (await import(href)) as typeof aiSDK;
    const message = `@parley/frameworks/ai-sdk needs ai >=6 <8, found ${version}`;
    const agent = { version: "agent-v1", tools: {}, stream: () => Promise.reject(new Error("never")) } as const;
    const client = { conversation: () => undefined } as never;
    expect(() => fromAISDK(agent, { name: "x", description: "x", version: "1", skills: [] })).toThrow(message);
    expect(() => remoteAgent(client)).toThrow(message);
    expect(() => a2aTool(client, { description: "x" })).toThrow(message);
  },
);

test.each([
  ["openai-agents", "@openai/agents", ">=0.17 <0.21", "0.16.2"],
  ["openai-agents", "@openai/agents", ">=0.17 <0.21", "0.21.0"],
  ["langgraph", "@langchain/langgraph", ">=1 <2", "0.4.9"],
  ["langgraph", "@langchain/langgraph", ">=1 <2", "2.0.0"],
])("%s rejects %s outside of %s on import: %s", async (adapter, name, range, version) => {
  const message = `@parley/frameworks/${adapter} needs ${name} ${range}, found ${version}`;
  const file = await adapterWith(adapter, name, version);
  await expect(promisify(execFile)(process.execPath, [file])).rejects.toThrow(message);
});

test("finds the installed version", () => {
  expect(installedVersion("ai", import.meta.url)).toMatch(/^7\./);
  expect(installedVersion("not-installed", import.meta.url)).toBeUndefined();
});
