import { mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { build } from "esbuild";
import { afterAll, beforeAll, expect, test } from "vitest";
import type * as aiSDK from "../src/ai-sdk/index.ts";
import { installedVersion } from "../src/shared/peer.ts";

/* The adapter in a project that has another version of the AI SDK. */

let folder = "";
let adapter = "";
beforeAll(async () => {
  // Outside of the repository, whose packages it would find.
  folder = await mkdtemp(join(tmpdir(), "parley-peer-"));
  const { outputFiles } = await build({
    entryPoints: [fileURLToPath(new URL("../src/ai-sdk/index.ts", import.meta.url))],
    bundle: true,
    format: "esm",
    platform: "node",
    conditions: ["@parley/source"],
    external: ["ai"],
    write: false,
  });
  adapter = outputFiles[0]?.text ?? "";
});
afterAll(() => rm(folder, { recursive: true }));

/** The adapter beside a package `ai` that has nothing of what the adapter uses. */
async function adapterWith(version: string): Promise<typeof aiSDK> {
  const project = join(folder, version);
  const installed = join(project, "node_modules", "ai");
  await mkdir(installed, { recursive: true });
  const exports = { ".": "./index.js", "./package.json": "./package.json" };
  await writeFile(join(installed, "package.json"), JSON.stringify({ name: "ai", version, type: "module", exports }));
  await writeFile(join(installed, "index.js"), "export const generateText = () => {};");
  await writeFile(join(project, "adapter.mjs"), adapter);
  return import(pathToFileURL(join(project, "adapter.mjs")).href) as Promise<typeof aiSDK>;
}

test.each(["5.0.1", "4.3.19", "8.0.0", "9.1.0-beta.2"])("refuses ai %s at start, with the range", async (version) => {
  const { fromAISDK, remoteAgent, a2aTool } = await adapterWith(version);
  const message = `@parley/frameworks/ai-sdk needs ai >=6 <8, found ${version}`;
  const agent = { version: "agent-v1", tools: {}, stream: () => Promise.reject(new Error("never")) } as const;
  const client = { conversation: () => undefined } as never;
  expect(() => fromAISDK(agent, { name: "x", description: "x", version: "1", skills: [] })).toThrow(message);
  expect(() => remoteAgent(client)).toThrow(message);
  expect(() => a2aTool(client, { description: "x" })).toThrow(message);
});

test("finds the version that is installed here", () => {
  expect(installedVersion("ai", import.meta.url)).toMatch(/^7\./);
  expect(installedVersion("not-installed", import.meta.url)).toBeUndefined();
});
